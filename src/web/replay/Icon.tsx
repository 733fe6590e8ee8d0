/**
 * The signs on the buttons. They say nothing to those who listen; the buttons have names.
 *
 * @since 0.1.0
 */

const paths = {
  play: "M5 3.2v9.6L13 8z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  first: "M3 3h1.6v10H3zM13 3.2v9.6L5.6 8z",
  last: "M11.4 3H13v10h-1.6zM3 3.2v9.6L10.4 8z",
  back: "M10.8 3.2 9.7 2.1 3.8 8l5.9 5.9 1.1-1.1L6 8z",
  on: "M5.2 3.2l1.1-1.1L12.2 8l-5.9 5.9-1.1-1.1L10 8z",
  backMark: "M9.5 3.5 14 8l-4.5 4.5L5 8zM2 3.5h1.5v9H2z",
  onMark: "M6.5 3.5 11 8l-4.5 4.5L2 8zM12.5 3.5H14v9h-1.5z",
  plus: "M7.2 3h1.6v4.2H13v1.6H8.8V13H7.2V8.8H3V7.2h4.2z",
  minus: "M3 7.2h10v1.6H3z",
  whole: "M2 3h1.5v10H2zM12.5 3H14v10h-1.5zM5 7.2l2-2v2h2v-2l2 2v1.6l-2 2v-2H7v2l-2-2z",
  close: "M4.1 3 3 4.1 6.9 8 3 11.9 4.1 13 8 9.1l3.9 3.9 1.1-1.1L9.1 8 13 4.1 11.9 3 8 6.9z",
  left: "M7.3 3 2.3 8l5 5 1.1-1.1L5.3 8.8H14V7.2H5.3l3.1-3.1z",
  down: "M7.2 2h1.6v6.2l2.1-2.1L12 7.2 8 11.2 4 7.2l1.1-1.1 2.1 2.1zM3 12.4h10V14H3z",
  file: "M3.5 1.5h6L13 5v9.5H3.5zM5 3v10h6.5V6H8.6V3z",
  more: "M3 6.8a1.2 1.2 0 1 1 0 2.4 1.2 1.2 0 0 1 0-2.4M8 6.8a1.2 1.2 0 1 1 0 2.4 1.2 1.2 0 0 1 0-2.4M13 6.8a1.2 1.2 0 1 1 0 2.4 1.2 1.2 0 0 1 0-2.4",
  copy: "M5.5 2H13v9.5h-1.5v-8h-6zM3 4.5h7V14H3zM4.5 6v6.5h4V6z"
} as const

/**
 * A sign of this name.
 *
 * @since 0.1.0
 * @category components
 */
export const Icon = ({ name }: { readonly name: keyof typeof paths }) => (
  <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
    <path d={paths[name]} fill="currentColor" fill-rule="evenodd" />
  </svg>
)
