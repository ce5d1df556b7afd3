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
    this.#texts.add(text);
    this.#length += Math.min(printable(text).length, ITEM_LIMIT);
  }

  /** One header value that holds all warnings, undefined when there are none. */
  header(): string | undefined {
    if (this.#texts.size === 0) return undefined;
    const texts = [...this.#texts].map(printable);
    const total = texts.reduce((sum, text) => sum + text.length, 0);
    const shown: string[] = [];
    let used = 0;
    for (const text of texts) {
      const cut = total > TOTAL_LIMIT ? text.slice(0, ITEM_LIMIT) : text;
      if (used + cut.length > TOTAL_LIMIT) break;
      used += cut.length;
      shown.push(`299 - "${cut.replace(/[\\"]/g, (character) => `\\${character}`)}"`);
    }
    return shown.join(', ');
  }
}

/** Header values are single lines of printable Latin-1; anything else is left out or replaced. */
const printable = (text: string): string => text.replace(/\p{Cc}+/gu, ' ').replace(/[^\u0020-\u00ff]/g, '?');
