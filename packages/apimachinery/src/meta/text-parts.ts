/** A long text on its way to bytes: short texts are gathered, and encoded part by part. */

/** Characters joined into one part. */
const PART = 64 * 1024;
const encoder = new TextEncoder();

export class TextParts {
  readonly #parts: Uint8Array[] = [];
  #texts: string[] = [];
  #size = 0;

  /** Adds a text; true when that filled a part, which was some work. */
  put(text: string): boolean {
    this.#texts.push(text);
    this.#size += text.length;
    if (this.#size < PART) return false;
    this.#encode();
    return true;
  }

  /** The parts, in UTF-8; nothing may be added after. */
  end(): Uint8Array[] {
    this.#encode();
    return this.#parts;
  }

  #encode(): void {
    this.#parts.push(encoder.encode(this.#texts.join('')));
    this.#texts = [];
    this.#size = 0;
  }
}
