/**
 * A strict JSON scanner that builds nothing: it finds duplicate keys, numbers that a double would change, and the first
 * syntax error with Go's wording and a position. Slow path only; parse-json decides when it is needed.
 */

export interface JsonFindings {
  readonly duplicates: string[];
  readonly inexact?: { readonly text: string; readonly path: string };
  readonly error?: string;
}

/** At most this many paths are reported, as upstream. */
const MAX_FINDINGS = 100;

class Stop extends Error {}

/** Scans a document no deeper than the caller's recursion allows (parse-json bounds it first). */
export function locateInJson(text: string): JsonFindings {
  const scanner = new Scanner(text);
  try {
    scanner.document();
    return { duplicates: scanner.duplicates, ...(scanner.inexact && { inexact: scanner.inexact }) };
  } catch (stop) {
    if (!(stop instanceof Stop)) throw stop;
    return { duplicates: scanner.duplicates, error: stop.message };
  }
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

class Scanner {
  readonly duplicates: string[] = [];
  inexact: { text: string; path: string } | undefined;
  readonly #text: string;
  #at = 0;
  constructor(text: string) {
    this.#text = text;
  }

  document(): void {
    this.#blank();
    this.#value('');
    this.#blank();
    if (this.#at < this.#text.length) this.#fail('after top-level value');
  }

  #blank(): void {
    for (; this.#at < this.#text.length; this.#at++) {
      const c = this.#text.charCodeAt(this.#at);
      if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return;
    }
  }

  #fail(where: string): never {
    const at = this.#at;
    if (at >= this.#text.length) throw new Stop('unexpected end of JSON input');
    const before = this.#text.slice(0, at);
    const line = before.split('\n').length;
    const column = at - before.lastIndexOf('\n');
    const c = String.fromCodePoint(this.#text.codePointAt(at)!);
    const shown = c === "'" ? "'\\''" : c === '"' ? `'"'` : `'${JSON.stringify(c).slice(1, -1)}'`;
    throw new Stop(`invalid character ${shown} ${where} (line ${line}, column ${column})`);
  }

  #value(path: string): void {
    const c = this.#text[this.#at];
    if (c === '{') this.#object(path);
    else if (c === '[') this.#array(path);
    else if (c === '"') this.#string();
    else if (c === '-' || (c !== undefined && c >= '0' && c <= '9')) this.#number(path);
    else if (c === 't') this.#word('true');
    else if (c === 'f') this.#word('false');
    else if (c === 'n') this.#word('null');
    else this.#fail('looking for beginning of value');
  }

  #object(path: string): void {
    const seen = new Set<string>();
    const reported = new Set<string>();
    this.#at++;
    this.#blank();
    if (this.#text[this.#at] === '}') {
      this.#at++;
      return;
    }
    for (;;) {
      this.#blank();
      if (this.#text[this.#at] !== '"') this.#fail('looking for beginning of object key string');
      const key = this.#string();
      const child = path === '' ? key : `${path}.${key}`;
      if (seen.has(key) && !reported.has(key) && this.duplicates.length < MAX_FINDINGS) {
        reported.add(key);
        this.duplicates.push(child);
      }
      seen.add(key);
      this.#blank();
      if (this.#text[this.#at] !== ':') this.#fail('after object key');
      this.#at++;
      this.#blank();
      this.#value(child);
      this.#blank();
      const c = this.#text[this.#at];
      if (c === ',') this.#at++;
      else if (c === '}') break;
      else this.#fail('after object key:value pair');
    }
    this.#at++;
  }

  #array(path: string): void {
    this.#at++;
    this.#blank();
    if (this.#text[this.#at] === ']') {
      this.#at++;
      return;
    }
    for (let i = 0; ; i++) {
      this.#blank();
      this.#value(`${path}[${i}]`);
      this.#blank();
      const c = this.#text[this.#at];
      if (c === ',') this.#at++;
      else if (c === ']') break;
      else this.#fail('after array element');
    }
    this.#at++;
  }

  #string(): string {
    const start = this.#at++;
    for (; this.#at < this.#text.length; this.#at++) {
      const c = this.#text.charCodeAt(this.#at);
      if (c === 0x22) {
        this.#at++;
        const quoted = this.#text.slice(start, this.#at);
        return quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
      }
      if (c === 0x5c) this.#escape();
      else if (c < 0x20) this.#fail('in string literal');
    }
    this.#fail('in string literal');
  }

  #escape(): void {
    this.#at++;
    const c = this.#text[this.#at];
    if (c === 'u') {
      for (let i = 0; i < 4; i++) {
        this.#at++;
        if (!/^[0-9a-fA-F]$/.test(this.#text[this.#at] ?? '')) this.#fail('in \\u hexadecimal character escape');
      }
    } else if (c === undefined || !'"\\/bfnrt'.includes(c)) {
      this.#fail('in string escape code');
    }
  }

  #number(path: string): void {
    NUMBER.lastIndex = this.#at;
    const match = NUMBER.exec(this.#text);
    if (match === null) {
      this.#at++;
      this.#fail('in numeric literal');
    }
    this.#at += match[0].length;
    if (this.inexact === undefined && !isExact(match[0])) this.inexact = { text: match[0], path };
  }

  #word(word: string): void {
    for (const c of word) {
      if (this.#text[this.#at] !== c) this.#fail(`in literal ${word} (expecting '${c}')`);
      this.#at++;
    }
  }
}

/** An integer must be written out again as it came in; a fraction or exponent asks for a double and has to be finite. */
export function isExact(token: string): boolean {
  const value = Number(token);
  if (!Number.isFinite(value)) return false;
  if (Number.isSafeInteger(value) || /[.eE]/.test(token)) return true;
  return String(value) === token || BigInt(value) === BigInt(token);
}
