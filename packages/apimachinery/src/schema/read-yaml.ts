/**
 * YAML bodies to JSON values, as Kubernetes does it (sigs.k8s.io/yaml, a YAML 1.1 flavour: `yes`, `on` and `y` are true,
 * `0777` is octal, but dates and `1:30` stay text).
 */
import {
  Composer,
  type CST,
  type Document,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  type ScalarTag,
  type Tags,
} from 'yaml';
import { setOwn } from '../meta/own-property.ts';
import { badRequest } from '../meta/status.ts';
import { inexactNumber, MAX_DEPTH, type NumberOptions, type ParsedJson, parseJson } from './read-json.ts';
import { readNumber } from './wide-integers.ts';

/** An anchor may be used this often, counting nested uses: YAML's "billion laughs" stops here. */
const MAX_ALIASES = 100;
/** Characters and nodes of the value after aliases were copied out. */
const MAX_EXPANDED = 12 * 1024 * 1024;
const MAX_FINDINGS = 100;

const encoder = new TextEncoder();

/**
 * Parses one YAML document (JSON is YAML, too, and takes the fast path).
 * @throws ApiError 400 when it is malformed, not a single document, nested too deeply, or expands beyond bounds
 */
export function parseYaml(text: string, options: NumberOptions = {}): ParsedJson {
  if (/^\s*\{/.test(text)) {
    try {
      const parsed = parseJson(encoder.encode(text), options);
      const duplicates = (): string[] =>
        parsed.duplicates().length === 0 ? [] : duplicateKeys(load(text).document, text);
      return { value: parsed.value, duplicates, yaml: true };
    } catch (error) {
      // Flow-style YAML may start with a brace as well: a mere syntax error leaves the decision to its own parser.
      if (!(error as Error).message.startsWith('json parse error')) throw error;
    }
  }
  const { document, value } = load(text, options);
  return { value, duplicates: () => duplicateKeys(document, text), yaml: true };
}

/** Throws ApiError 400 for what would nest too deeply: the parser itself needs seconds to find out. */
function assertShallow(text: string): void {
  let openers = 0;
  for (let at = 0; at < text.length && openers <= MAX_DEPTH; at++) if (OPENERS.has(text.charCodeAt(at))) openers++;
  if (openers <= MAX_DEPTH) return;
  let flow = 0;
  // Lists and keys within one another on one line: `- - - a`.
  let inLine = 0;
  let isText = false;
  for (const token of new Lexer().lex(text)) {
    if (isText) isText = false;
    else if (token === START_OF_TEXT) isText = true;
    else if (token === '[' || token === '{') flow++;
    else if (token === ']' || token === '}') flow--;
    else if (token === '-' || token === '?') inLine++;
    else if (token.includes('\n')) inLine = 0;
    if (flow + inLine > MAX_DEPTH) throw badRequest(`yaml: exceeded the maximum depth of ${MAX_DEPTH}`);
  }
}
const OPENERS = new Set(['[', '{', '-', '?'].map((sign) => sign.charCodeAt(0)));
/** What the lexer puts before a scalar. */
const START_OF_TEXT = '\u001f';

/** What no YAML text may hold, by the reader of Go's parser. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]/;

function load(given: string, options: NumberOptions = {}): { readonly document: Document; readonly value: unknown } {
  if (CONTROL.test(given)) throw badRequest('yaml: control characters are not allowed');
  assertShallow(given);
  try {
    const text = given.replace(/\n(---|\.\.\.)\s*$/, '\n');
    const lines = new LineCounter();
    lines.addNewLine(0);
    const parser = new Parser(lines.addNewLine);
    const tokens: CST.Token[] = [];
    for (const lexeme of new Lexer().lex(text)) {
      for (const token of parser.next(lexeme)) tokens.push(token);
    }
    tokens.push(...parser.end());
    const composer = new Composer({
      version: '1.1',
      customTags: kubernetesTags,
      intAsBigInt: true,
      uniqueKeys: false,
      logLevel: 'error',
      strict: true,
      merge: true,
    });
    const [document, more] = composer.compose(tokens, true, text.length);
    if (document === undefined) throw new Error('no document was found');
    const problem = document.errors[0];
    if (problem !== undefined) {
      // The parser reports its own stack's end as a mistake at the line it had reached.
      const deep = problem.message.includes('call stack');
      throw badRequest(`yaml: ${deep ? `exceeded the maximum depth of ${MAX_DEPTH}` : describe(problem, lines)}`);
    }
    if (more !== undefined) throw badRequest('yaml: a single document is expected, found several');
    endAsWritten(document, text);
    const loose: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    const budget = { left: MAX_EXPANDED, depth: 0, wide: options.wideIntegers === true };
    return { document, value: toJson(loose, '', budget) };
  } catch (error) {
    if (error instanceof Error && error.name === 'ApiError') throw error;
    throw badRequest(`yaml: ${(error as Error).message}`);
  }
}

/** A block text that the file ends in the middle of a line ends there, too: this parser would add a line break. */
function endAsWritten(document: Document, text: string): void {
  if (!/[^ \t\n][ \t]*$/.test(text.slice(text.lastIndexOf('\n') + 1))) return;
  let last: unknown = document.contents;
  while (isMap(last) || isSeq(last)) last = isMap(last) ? last.items.at(-1)?.value : last.items.at(-1);
  if (!isScalar(last) || typeof last.value !== 'string' || last.type?.startsWith('BLOCK_') !== true) return;
  if ((last.range?.[1] ?? 0) >= text.length && last.value.endsWith('\n')) last.value = last.value.slice(0, -1);
}

function describe({ message, pos }: Document['errors'][number], lines: LineCounter): string {
  const { line } = lines.linePos(pos[0]);
  const first = message.split('\n')[0]!;
  return line === 0 ? first : `line ${line}: ${first}`;
}

const INT = 'tag:yaml.org,2002:int';
const FLOAT = 'tag:yaml.org,2002:float';

/** Digits of a number that a double might hold, in any base. */
const MAX_DIGITS = 1100;

/** Decimal, 0x, 0o, 0b, and octal by a leading zero; underscores may part the digits. */
const intTag: ScalarTag = {
  tag: INT,
  default: true,
  test: /^[-+]?(?:0|[1-9][0-9_]*|0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+)$/,
  resolve(text) {
    const digits = text.replace(/[-+_]/g, '').replace(/^0(?=[0-9])/, '0o');
    // What no double holds is text to Go's parser.
    if (digits.length > MAX_DIGITS) return text;
    const value = BigInt(digits);
    if (!Number.isFinite(Number(value))) return text;
    return value * (text.startsWith('-') ? -1n : 1n);
  },
};

/** Stricter than YAML 1.1, whose numbers include `e1000`: a digit has to come first, as in Go's parser. */
const floatTag: ScalarTag = {
  tag: FLOAT,
  default: true,
  test: /^[-+]?(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?$/,
  resolve(text) {
    const number = Number(text.replace(/_/g, ''));
    // What no double holds is text to Go's parser.
    return Number.isFinite(number) ? number : text;
  },
};

/** YAML 1.1 without the types that JSON has no room for, and with the numbers of Go's parser. */
function kubernetesTags(tags: Tags): Tags {
  const kept = tags.filter((tag) => {
    const { tag: name, format, test } = tag as ScalarTag;
    if (format === 'TIME' || name === INT) return false;
    if (name === FLOAT) return test?.test('.nan') === true;
    return !/:(timestamp|binary|omap|pairs|set)$/.test(name);
  });
  return [intTag, floatTag, ...kept];
}

interface Budget {
  left: number;
  readonly wide: boolean;
  depth: number;
}

/** Copies aliases out, turns exact integers into numbers, and refuses what JSON cannot say. */
function toJson(value: unknown, path: string, budget: Budget): unknown {
  budget.left -= typeof value === 'string' ? value.length + 1 : 1;
  if (budget.left < 0) throw badRequest('yaml: document contains excessive aliasing');
  switch (typeof value) {
    case 'bigint':
      if (budget.wide) return readNumber(String(value));
      if (BigInt(Number(value)) !== value) throw inexactNumber(String(value), path);
      return Number(value);
    case 'number':
      if (Number.isNaN(value)) throw badRequest('json: unsupported value: NaN');
      if (!Number.isFinite(value)) throw badRequest(`json: unsupported value: ${value > 0 ? '+' : '-'}Inf`);
      return value;
    case 'undefined':
      return null;
    case 'object':
      return value === null ? null : containerToJson(value, path, budget);
    default:
      return value;
  }
}

function containerToJson(value: object, path: string, budget: Budget): unknown {
  if (++budget.depth > MAX_DEPTH) throw badRequest(`yaml: exceeded the maximum depth of ${MAX_DEPTH}`);
  let out: unknown[] | Record<string, unknown> = {};
  if (Array.isArray(value)) out = value.map((item, i) => toJson(item, `${path}[${i}]`, budget));
  else {
    for (const [key, member] of value instanceof Map ? value : Object.entries(value)) {
      const name = String(key);
      setOwn(out, name, toJson(member, path === '' ? name : `${path}.${name}`, budget));
    }
  }
  budget.depth--;
  return out;
}

/** Keys given twice in one mapping, as Go's reader names them: by the line of the value that came too late. */
function duplicateKeys(document: Document, text: string): string[] {
  const found: string[] = [];
  findDuplicates(document.contents, lineCounter(text), found);
  return found;
}

function findDuplicates(node: unknown, lineAt: (offset: number) => number, found: string[]): void {
  if (isMap(node)) {
    // By value, not by text: `1`, `1.0` and `"1"` are three keys to Go's reader.
    const seen = new Set<unknown>();
    for (const pair of node.items) {
      const key: unknown = isScalar(pair.key) ? pair.key.value : '?';
      // A merge key (`<<`) is a symbol and may come again.
      if (seen.has(key) && typeof key !== 'symbol' && found.length < MAX_FINDINGS) {
        const late = ((pair.value ?? pair.key) as Node).range ?? (pair.key as Node).range;
        const shown = typeof key === 'string' ? JSON.stringify(key) : String(key);
        found.push(`line ${lineAt(late?.[0] ?? 0)}: key ${shown} already set in map`);
      }
      seen.add(key);
      findDuplicates(pair.value, lineAt, found);
    }
  } else if (isSeq(node)) {
    for (const item of node.items) findDuplicates(item, lineAt, found);
  }
}

/** The line of an offset, from 1. Counts on from where it was asked last: offsets mostly come in order. */
function lineCounter(text: string): (offset: number) => number {
  let [line, next] = [1, 0];
  return (offset) => {
    if (offset < next) [line, next] = [1, 0];
    for (let at = text.indexOf('\n', next); at >= 0 && at < offset; at = text.indexOf('\n', next)) {
      line++;
      next = at + 1;
    }
    return line;
  };
}
