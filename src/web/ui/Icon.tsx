/**
 * The signs of the pages, drawn in the colour of the text around them. They say nothing to a screen reader; what they
 * stand on does.
 *
 * @since 0.1.0
 */

const paths = {
  menu: "M4 6h16M4 12h16M4 18h16",
  plus: "M12 5v14M5 12h14",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14ZM20 20l-4-4",
  edit: "M4 20h4L19 9l-4-4L4 16v4ZM13 7l4 4",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "m5 13 4 4L19 7",
  close: "M6 6l12 12M18 6 6 18",
  stop: "M7 7h10v10H7z",
  send: "M12 19V5M6 11l6-6 6 6",
  again: "M4 12a8 8 0 0 1 13.7-5.6L20 8.6M20 4v4.6h-4.6M20 12a8 8 0 0 1-13.7 5.6L4 15.4M4 20v-4.6h4.6",
  play: "M8 5.5v13l10.5-6.5z",
  pause: "M9 6v12M15 6v12",
  first: "M6 5v14M18 6l-8 6 8 6z",
  last: "M18 5v14M6 6l8 6-8 6z",
  backMark: "M4 6v12M14 6l6 6-6 6-6-6z",
  onMark: "M20 6v12M10 6l6 6-6 6-6-6z",
  minus: "M5 12h14",
  whole: "M4 5v14M20 5v14M7 12h10M10 9l-3 3 3 3M14 9l3 3-3 3",
  arrow: "M20 12H5M11 6l-6 6 6 6",
  download: "M12 4v11M7 10l5 5 5-5M5 20h14",
  more: "M5 11.5v1M12 11.5v1M19 11.5v1",
  left: "m14 6-6 6 6 6",
  right: "m10 6 6 6-6 6",
  down: "m6 10 6 6 6-6",
  columns: "M4 5h16v14H4zM12 5v14",
  document: "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
  tool: "M14.5 6.5a4 4 0 0 0-5.2 5L4 16.8 7.2 20l5.3-5.3a4 4 0 0 0 5-5.2l-2.6 2.6-2.5-.5-.5-2.5z",
  question: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 17.5v.5M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Z",
  alert: "M12 4 3 20h18zM12 10v4M12 17v.5",
  clock: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18ZM12 7v5l3 2",
  history: "M4 12a8 8 0 1 0 2.4-5.7L4 8.6M4 4v4.6h4.6M12 8v4l3 2",
  thought: "M9.5 18.5h5M10 21h4M12 3a6 6 0 0 0-3.5 10.9c.7.6 1 1.2 1 2.1h5c0-.9.3-1.5 1-2.1A6 6 0 0 0 12 3Z"
} as const

/**
 * The name of a sign.
 *
 * @since 0.1.0
 * @category models
 */
export type IconName = keyof typeof paths

/**
 * A sign beside, or in place of, words.
 *
 * @since 0.1.0
 * @category components
 */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={paths[name]} />
  </svg>
)
