/**
 * A strict JSON reader that can stop anywhere and go on later. It finds duplicate keys, numbers that a double would
 * change, and the first syntax error with Go's wording and a position; the value is built when asked for. Slower than
 * JSON.parse: for texts that JSON.parse refused or changed, and for those too long to be parsed in one go.
 */
import { setOwn } from '../meta/own-property.ts';
import { readNumber } from './wide-integers.ts';

/** A number that a document spells otherwise than JavaScript would: `1.0`, `1e3`, `9007199254740993`. */
export interface OddNumber {
  readonly text: string;
  /** What leads to it. */
  readonly keys: readonly (string | number)[];
}

/** By path: `spec.ports[0].port`. */
export type OddNumbers = ReadonlyMap<string, OddNumber>;

interface JsonFindings {
  readonly duplicates: string[];
  /** When asked for: the first of them, at most MAX_ODD_NUMBERS. */
  readonly numbers: OddNumbers;
  readonly inexact?: { readonly text: string; readonly path: string };
  readonly error?: string;
}

/** At most this many paths are reported, as upstream. */
const MAX_FINDINGS = 100;
/** Numbers beyond these are what JavaScript reads, or refused where it cannot keep them. */
const MAX_ODD_NUMBERS = 10_000;

const NONE: OddNumbers = new Map();

class Stop extends Error {}

interface ReaderOptions {
  readonly build: boolean;
  readonly wideIntegers?: boolean | undefined;
  readonly oddNumbers?: boolean | undefined;
}

/** Reads a whole document, building nothing. */
export function locateInJson(text: string, options: Omit<ReaderOptions, 'build'> = {}): JsonFindings {
  const reader = new JsonReader(text, { build: false, ...options });
  reader.read(text.length + 1);
  return reader.findings();
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
/** V8 keeps the whole text alive for a slice of at least this length; texts of a body would hold all of it. */
const SHORT = 13;

/** A list or object that is being read. */
interface Frame {
  readonly value: unknown[] | Record<string, unknown>;
  /** The names so far; what is built knows them itself. */
  readonly seen: Set<string> | undefined;
  reported: Set<string> | undefined;
  /** The member or item in hand. */
  key: string;
  index: number;
}

type Expected = 'value' | 'first-item' | 'first-key' | 'key' | 'rest' | 'end';

export class JsonReader {
  readonly #text: string;
  readonly #build: boolean;
  readonly #wide: boolean;
  readonly #numbers: Map<string, OddNumber> | undefined;
  readonly #duplicates: string[] = [];
  readonly #stack: Frame[] = [];
  #inexact: { text: string; path: string } | undefined;
  #error: string | undefined;
  #at = 0;
  #expected: Expected = 'value';
  #root: unknown;

  constructor(text: string, { build, wideIntegers = false, oddNumbers = false }: ReaderOptions) {
    this.#text = text;
    this.#build = build;
    this.#wide = wideIntegers;
    this.#numbers = oddNumbers ? new Map() : undefined;
  }

  /** The document, once `read` has said true and there was no error. */
  get value(): unknown {
    return this.#root;
  }

  findings(): JsonFindings {
    return {
      duplicates: this.#duplicates,
      numbers: this.#numbers ?? NONE,
      ...(this.#inexact && { inexact: this.#inexact }),
      ...(this.#error !== undefined && { error: this.#error }),
    };
  }

  /** Reads on for about so many characters; true when the document is read, or is none. */
  read(characters: number): boolean {
    const until = this.#at + characters;
    try {
      while (this.#at < until) if (this.#step()) return true;
      return false;
    } catch (stop) {
      if (!(stop instanceof Stop)) throw stop;
      this.#error = stop.message;
      return true;
    }
  }

  #step(): boolean {
    this.#blank();
    switch (this.#expected) {
      case 'value':
        this.#value();
        return false;
      case 'first-item':
        if (this.#text[this.#at] === ']') this.#close();
        else this.#value();
        return false;
      case 'first-key':
        if (this.#text[this.#at] === '}') this.#close();
        else this.#key();
        return false;
      case 'key':
        this.#key();
        return false;
      case 'rest':
        this.#rest();
        return false;
      case 'end':
        if (this.#at < this.#text.length) this.#fail('after top-level value');
        return true;
    }
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

  #value(): void {
    const c = this.#text[this.#at];
    if (c === '{') this.#open({}, 'first-key');
    else if (c === '[') this.#open([], 'first-item');
    else if (c === '"') this.#put(this.#string(false));
    else if (c === '-' || (c !== undefined && c >= '0' && c <= '9')) this.#put(this.#number());
    else if (c === 't') this.#put(this.#word('true', true));
    else if (c === 'f') this.#put(this.#word('false', false));
    else if (c === 'n') this.#put(this.#word('null', null));
    else this.#fail('looking for beginning of value');
  }

  #open(value: unknown[] | Record<string, unknown>, expected: Expected): void {
    this.#put(value);
    const seen = this.#build || Array.isArray(value) ? undefined : new Set<string>();
    this.#stack.push({ value, seen, reported: undefined, key: '', index: 0 });
    this.#at++;
    this.#expected = expected;
  }

  #close(): void {
    this.#stack.pop();
    this.#at++;
    this.#expected = this.#stack.length === 0 ? 'end' : 'rest';
  }

  /** Hands a value to the list or object it stands in. */
  #put(value: unknown): void {
    const frame = this.#stack.at(-1);
    this.#expected = frame === undefined ? 'end' : 'rest';
    if (!this.#build) return;
    if (frame === undefined) this.#root = value;
    else if (Array.isArray(frame.value)) frame.value.push(value);
    else setOwn(frame.value, frame.key, value);
  }

  #key(): void {
    if (this.#text[this.#at] !== '"') this.#fail('looking for beginning of object key string');
    const frame = this.#stack.at(-1)!;
    const key = this.#string(true);
    frame.key = key;
    const isRepeated = frame.seen === undefined ? Object.hasOwn(frame.value, key) : frame.seen.has(key);
    if (isRepeated) this.#repeated(frame);
    frame.seen?.add(key);
    this.#blank();
    if (this.#text[this.#at] !== ':') this.#fail('after object key');
    this.#at++;
    this.#expected = 'value';
  }

  #repeated(frame: Frame): void {
    if (this.#duplicates.length >= MAX_FINDINGS || frame.reported?.has(frame.key)) return;
    frame.reported ??= new Set();
    frame.reported.add(frame.key);
    this.#duplicates.push(this.#path());
  }

  /** What stands between two members or items, or ends the list. */
  #rest(): void {
    const frame = this.#stack.at(-1)!;
    const isList = Array.isArray(frame.value);
    const c = this.#text[this.#at];
    if (c === ',') {
      this.#at++;
      frame.index++;
      this.#expected = isList ? 'value' : 'key';
    } else if (c === (isList ? ']' : '}')) {
      this.#close();
    } else {
      this.#fail(isList ? 'after array element' : 'after object key:value pair');
    }
  }

  /** `spec.containers[0].x`: where we are. */
  #path(): string {
    let text = '';
    for (const { value, key, index } of this.#stack) {
      if (Array.isArray(value)) text += `[${index}]`;
      else text += text === '' ? key : `.${key}`;
    }
    return text;
  }

  #string(isKey: boolean): string {
    const start = this.#at++;
    let isPlain = true;
    for (; this.#at < this.#text.length; this.#at++) {
      const c = this.#text.charCodeAt(this.#at);
      if (c === 0x22) {
        this.#at++;
        if (isPlain && (isKey || this.#at - start < SHORT)) return this.#text.slice(start + 1, this.#at - 1);
        return isKey || this.#build ? (JSON.parse(this.#text.slice(start, this.#at)) as string) : '';
      }
      if (c === 0x5c) {
        isPlain = false;
        this.#escape();
      } else if (c < 0x20) this.#fail('in string literal');
    }
    this.#fail('in string literal');
  }

  #escape(): void {
    this.#at++;
    const c = this.#text[this.#at];
    if (c === 'u') {
      for (let i = 0; i < 4; i++) {
        this.#at++;
        if (!isHex(this.#text.charCodeAt(this.#at))) this.#fail('in \\u hexadecimal character escape');
      }
    } else if (c === undefined || !'"\\/bfnrt'.includes(c)) {
      this.#fail('in string escape code');
    }
  }

  #number(): number | bigint {
    NUMBER.lastIndex = this.#at;
    const match = NUMBER.exec(this.#text);
    if (match === null) {
      this.#at++;
      this.#fail('in numeric literal');
    }
    const [text] = match;
    this.#at += text.length;
    if (this.#numbers !== undefined && this.#numbers.size < MAX_ODD_NUMBERS) {
      if (String(Number(text)) !== text) {
        const keys = this.#stack.map(({ value, key, index }) => (Array.isArray(value) ? index : key));
        this.#numbers.set(this.#path(), { text, keys });
      }
      return Number(text);
    }
    const isKept = this.#wide ? Number.isFinite(Number(text)) : isExact(text);
    if (this.#inexact === undefined && !isKept) this.#inexact = { text, path: this.#path() };
    return this.#wide ? readNumber(text) : Number(text);
  }

  #word<T>(word: string, value: T): T {
    for (const c of word) {
      if (this.#text[this.#at] !== c) this.#fail(`in literal ${word} (expecting '${c}')`);
      this.#at++;
    }
    return value;
  }
}

/** NaN, beyond the text's end, is none. */
const isHex = (c: number): boolean => (c >= 0x30 && c <= 0x39) || (c >= 0x41 && c <= 0x46) || (c >= 0x61 && c <= 0x66);

/** An integer must be written out again as it came in; a fraction or exponent asks for a double and has to be finite. */
function isExact(token: string): boolean {
  const value = Number(token);
  if (!Number.isFinite(value)) return false;
  if (Number.isSafeInteger(value) || /[.eE]/.test(token)) return true;
  return String(value) === token || BigInt(value) === BigInt(token);
}
