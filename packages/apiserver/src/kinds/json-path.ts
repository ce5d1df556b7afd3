/**
 * The JSONPath that printer columns and selectable fields are written in (client-go util/jsonpath, the part that needs
 * no template): `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`, `['a.b']`, `.metadata.labels.a\.b`,
 * `[0]`, `[-1]`, `[1:3]`, `[*]`, `.*`, `['a','b']`, `..name`.
 */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';

/** A path outside the language. */
export class JsonPathError extends Error {
  readonly path: string;
  constructor(path: string, why: string) {
    super(`invalid JSONPath ${JSON.stringify(path)}: ${why}`);
    this.name = 'JsonPathError';
    this.path = path;
  }
}

/** One step: every value so far gives any number of values. */
type Step = (value: unknown) => readonly unknown[];

/** Compiled paths, kept because a table asks for the same few for every row. */
const compiled = new Map<string, readonly Step[]>();
const MAX_COMPILED = 2048;

const NOTHING: readonly unknown[] = [];

/** Paths descend into an object again and again (`..*..*`): what they would find after this many values is not looked for. */
const MAX_VALUES = 10_000;

/**
 * Every value that the path leads to; none when something on the way is absent.
 * @throws JsonPathError
 */
export function findJsonPath(object: unknown, path: string): readonly unknown[] {
  let values: readonly unknown[] = [object];
  for (const step of compileJsonPath(path)) {
    if (values.length === 0) return NOTHING;
    values = values.length === 1 ? step(values[0]) : stepAll(step, values);
  }
  return values;
}

function stepAll(step: Step, values: readonly unknown[]): readonly unknown[] {
  const found: unknown[] = [];
  for (const value of values) {
    for (const one of step(value)) found.push(one);
    if (found.length > MAX_VALUES) break;
  }
  return found;
}

/**
 * The first value that the path leads to, undefined when there is none: what a printer column shows.
 * @throws JsonPathError
 */
export const readJsonPath = (object: unknown, path: string): unknown => findJsonPath(object, path)[0];

/**
 * Checks and compiles a path, with or without braces and leading `$`.
 * @throws JsonPathError
 */
function compileJsonPath(path: string): readonly Step[] {
  const known = compiled.get(path);
  if (known !== undefined) return known;
  const steps = new PathReader(path).read();
  if (compiled.size >= MAX_COMPILED) compiled.clear();
  compiled.set(path, steps);
  return steps;
}

const member =
  (name: string): Step =>
  (value) =>
    isJsonObject(value) && Object.hasOwn(value, name) ? [value[name]] : NOTHING;

const everything: Step = (value) =>
  Array.isArray(value) ? value : isJsonObject(value) ? Object.values(value) : NOTHING;

/** The value and all that it holds, but for what holds nothing itself. */
const descend: Step = (value) => {
  const found: unknown[] = [];
  const waiting = [value];
  while (waiting.length > 0 && found.length < MAX_VALUES) {
    const at = waiting.pop();
    const inner = everything(at);
    if (inner.length === 0) continue;
    found.push(at);
    for (let i = inner.length - 1; i >= 0; i--) waiting.push(inner[i]);
  }
  return found;
};

const SLICE = /^(-?\d*):(-?\d*)$/;
const FILTER = /^\?\(\s*@([^=!<>]*?)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?)\s*)?\)$/s;
/** Ends a bare name. */
const NAME_END = new Set(['.', '[', ']']);

class PathReader {
  readonly #path: string;
  readonly #text: string;
  #at = 0;

  constructor(path: string) {
    this.#path = path;
    const trimmed = path.trim();
    const bare = trimmed.startsWith('{') && trimmed.endsWith('}') ? trimmed.slice(1, -1).trim() : trimmed;
    this.#text = bare.startsWith('$') || bare.startsWith('@') ? bare.slice(1) : bare;
  }

  read(): Step[] {
    const steps: Step[] = [];
    if (this.#text !== '' && this.#text[0] !== '.' && this.#text[0] !== '[') this.#fail('it must begin with a dot');
    while (this.#at < this.#text.length) {
      steps.push(...(this.#text[this.#at] === '[' ? [this.#inside(this.#untilClosed())] : this.#dot()));
    }
    return steps;
  }

  /** `.name`, `.*`, or the lone dot that means the whole object. */
  #dot(): Step[] {
    this.#at++;
    const next = this.#text[this.#at];
    if (next === undefined || next === '[') return [];
    if (next === '.') {
      const [after, ...more] = this.#dot();
      if (after === undefined) this.#fail('a name is missing');
      return [descend, after, ...more];
    }
    if (next === '*') {
      this.#at++;
      return [everything];
    }
    let name = '';
    while (this.#at < this.#text.length && !NAME_END.has(this.#text[this.#at]!)) {
      if (this.#text[this.#at] === '\\') this.#at++;
      name += this.#text[this.#at] ?? '';
      this.#at++;
    }
    if (name === '') this.#fail('a name is missing');
    return [member(name)];
  }

  #inside(inside: string): Step {
    const quoted = unquote(inside);
    if (quoted !== undefined) return member(quoted);
    if (inside === '*') return everything;
    if (/^-?\d+$/.test(inside)) {
      const at = Number(inside);
      return (value) => {
        const item: unknown = Array.isArray(value) ? value.at(at) : undefined;
        return item === undefined ? NOTHING : [item];
      };
    }
    const range = SLICE.exec(inside);
    if (range !== null) {
      const [from, to] = range.slice(1).map((bound) => (bound ? Number(bound) : undefined));
      return (value) => (Array.isArray(value) ? value.slice(from, to) : NOTHING);
    }
    const condition = FILTER.exec(inside);
    if (condition !== null) {
      const test = this.#test(condition);
      return (value) => (Array.isArray(value) ? value.filter(test) : NOTHING);
    }
    const parts = inside.split(',');
    if (parts.length === 1) return this.#fail(`[${inside}] is not supported`);
    const steps = parts.map((part) => this.#inside(part.trim()));
    return (value) => steps.flatMap((step) => step(value));
  }

  #test([, path = '', operator, literal = '']: RegExpExecArray): (value: unknown) => boolean {
    const read = (value: unknown): unknown => readJsonPath(value, path);
    compileJsonPath(path);
    if (operator === undefined) return (value) => read(value) !== undefined;
    const expected = parseLiteral(literal);
    if (expected === undefined) return this.#fail(`${literal} is not a string, number or boolean`);
    return (value) => compare(read(value), operator, expected);
  }

  /** The text up to the bracket's end; brackets inside quotes or filters do not count. */
  #untilClosed(): string {
    const start = ++this.#at;
    let depth = 1;
    let quote = '';
    for (; this.#at < this.#text.length; this.#at++) {
      const char = this.#text[this.#at]!;
      if (quote !== '') {
        if (char === '\\') this.#at++;
        else if (char === quote) quote = '';
      } else if (char === '"' || char === "'") quote = char;
      else if (char === '[') depth++;
      else if (char === ']' && --depth === 0) return this.#text.slice(start, this.#at++).trim();
    }
    return this.#fail('a bracket is not closed');
  }

  #fail(why: string): never {
    throw new JsonPathError(this.#path, why);
  }
}

/** One quoted text: `'a','b'` is two. */
const QUOTED = /^(["'])((?:\\.|(?!\1)[^\\])*)\1$/s;

const unquote = (text: string): string | undefined => QUOTED.exec(text)?.[2]?.replaceAll(/\\(.)/g, '$1');

type Literal = string | number | boolean;

function parseLiteral(text: string): Literal | undefined {
  const quoted = unquote(text);
  if (quoted !== undefined) return quoted;
  if (text === 'true' || text === 'false') return text === 'true';
  const number = Number(text);
  return text === '' || Number.isNaN(number) ? undefined : number;
}

/** Values of different types are never equal and never ordered; nor are two booleans. */
function compare(value: unknown, operator: string, expected: Literal): boolean {
  if (operator === '==') return value === expected;
  if (operator === '!=') return value !== undefined && value !== expected;
  if (typeof value !== typeof expected || typeof value === 'boolean') return false;
  const given = value as string | number;
  switch (operator) {
    case '<':
      return given < expected;
    case '<=':
      return given <= expected;
    case '>':
      return given > expected;
    default:
      return given >= expected;
  }
}
