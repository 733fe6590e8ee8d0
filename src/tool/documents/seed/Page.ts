/**
 * A page of the documentation.
 *
 * @since 0.1.0
 */

/**
 * - `id`: what tools and links name it by; never changes
 * - `text`: Markdown
 *
 * @since 0.1.0
 * @category models
 */
export interface Page {
  readonly id: string
  readonly title: string
  readonly text: string
}
