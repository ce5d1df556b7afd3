/** `Warning: 299` headers: unique, escaped, bounded (endpoints/filters/warning.go). */

/** All texts together before items are cut short. */
const TOTAL_LIMIT = 4096;
const ITEM_LIMIT = 256;

/** Collects the warnings of one request. */
export class WarningRecorder {
  readonly #texts = new Set<string>();
  /** Characters of the texts, cut as they are when there are too many. */
  #length = 0;

  add(text: string): void {
    // What would be beyond the limit however short the others are cut is never shown.
    if (text === '' || this.#length > TOTAL_LIMIT || this.#texts.has(text)) return;
    // Go makes no header of such a text (net.NewWarningHeader), and says nothing.
    if (CONTROL.test(text)) return;
    this.#texts.add(text);
    this.#length += Math.min(text.length, ITEM_LIMIT);
  }

  /** One header value that holds all warnings, undefined when there are none. */
  header(): string | undefined {
    if (this.#texts.size === 0) return undefined;
    const texts = [...this.#texts];
    const total = texts.reduce((sum, text) => sum + text.length, 0);
    const shown: string[] = [];
    let used = 0;
    for (const text of texts) {
      const cut = total > TOTAL_LIMIT ? text.slice(0, ITEM_LIMIT) : text;
      if (used + cut.length > TOTAL_LIMIT) break;
      used += cut.length;
      shown.push(`299 - "${headerText(cut.replace(/[\\"]/g, (character) => `\\${character}`))}"`);
    }
    return shown.join(', ');
  }
}

const CONTROL = /\p{Cc}/u;
const encoder = new TextEncoder();

/** A header is sent byte by byte, and its bytes are UTF-8. */
const headerText = (text: string): string =>
  /^[\u0020-\u007e]*$/.test(text) ? text : String.fromCharCode(...encoder.encode(text));
