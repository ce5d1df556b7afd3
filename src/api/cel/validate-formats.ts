/**
 * `'...'.format([...])` of literals, checked when the expression is written (cel-go ext/formatting, stringFormatValidator):
 * every clause is known and fits the type of its argument, and every argument has a clause.
 */
import type { Report } from './report.ts';
import { type Call, children, type Expr } from './syntax.ts';
import { type CelKind, type CelType, fullTypeName } from './types.ts';

/** Adds a fault for each format that can never work. Expects a checked expression. */
export function validateFormats(expr: Expr, report: Report): void {
  if (expr.op === 'call') validateCall(expr, report);
  for (const child of children(expr)) validateFormats(child, report);
}

/** What is wrong, and where when that is not the call itself. */
class FormatFault extends Error {
  readonly at: number | undefined;

  constructor(message: string, at?: number) {
    super(message);
    this.at = at;
  }
}

function validateCall({ name, target, args, at }: Call, report: Report): void {
  const [list] = args;
  if (name !== 'format' || target?.op !== 'literal' || typeof target.value !== 'string' || list?.op !== 'list') return;
  const items = list.items.map(({ value }) => value);
  try {
    const used = checkClauses(target.value, items);
    if (used < items.length) {
      throw new FormatFault(`too many arguments supplied to string.format (expected ${used}, got ${items.length})`);
    }
  } catch (error) {
    if (!(error instanceof FormatFault)) throw error;
    report.add(error.at ?? at, error.message);
  }
}

/** The number of arguments that have a clause. Throws FormatFault. Clauses are read byte by byte, as upstream reads them. */
function checkClauses(text: string, items: readonly Expr[]): number {
  const format = String.fromCharCode(...new TextEncoder().encode(text));
  let used = 0;
  for (let i = 0; i < format.length; ) {
    if (format[i] !== '%') i++;
    else if (format[i + 1] === '%') i += 2;
    else {
      const item = items[used];
      if (i + 1 >= format.length) throw new FormatFault('unexpected end of string');
      if (item === undefined) throw new FormatFault(`index ${used} out of range`);
      const { length, verb } = clauseAt(format.slice(i + 1));
      checkItem(verb, item);
      i += 1 + length;
      used++;
    }
  }
  return used;
}

function clauseAt(rest: string): { readonly length: number; readonly verb: Verb } {
  const unreadable = (why: string): never => {
    throw new FormatFault(`could not parse formatting clause: ${why}`);
  };
  let length = 0;
  if (rest[0] === '.') {
    const digits = /^[0-9]*/.exec(rest.slice(1))![0];
    length = 1 + digits.length;
    const precision = (why: string): never => unreadable(`error while parsing precision: ${why}`);
    if (length >= rest.length) precision('could not find end of precision specifier');
    const parsing = `error while converting precision to integer: strconv.Atoi: parsing ${JSON.stringify(digits)}`;
    if (digits === '') precision(`${parsing}: invalid syntax`);
    if (BigInt(digits) >= 2n ** 63n) precision(`${parsing}: value out of range`);
  }
  const verb = rest[length]!;
  if (!isVerb(verb)) return unreadable(`unrecognized formatting clause "${verb}"`);
  return { length: length + 1, verb };
}

type Verb = 's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o';

interface Clause {
  readonly kinds: readonly CelKind[];
  readonly refusal: string;
}

const HEX: Clause = {
  kinds: ['int', 'uint', 'string', 'bytes'],
  refusal: 'only integers, byte buffers, and strings can be formatted as hex',
};
const CLAUSES: Readonly<Record<Verb, Clause>> = {
  s: {
    kinds: ['list', 'map', 'int', 'uint', 'double', 'bool', 'string', 'timestamp', 'bytes', 'duration', 'type', 'null'],
    refusal:
      'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
  },
  d: { kinds: ['int', 'uint'], refusal: 'decimal clause can only be used on integers' },
  f: { kinds: ['double', 'string'], refusal: 'fixed-point clause can only be used on doubles' },
  e: { kinds: ['double', 'string'], refusal: 'scientific clause can only be used on doubles' },
  b: { kinds: ['int', 'uint', 'bool'], refusal: 'only integers and bools can be formatted as binary' },
  x: HEX,
  X: HEX,
  o: { kinds: ['int', 'uint'], refusal: 'octal clause can only be used on integers' },
};

const isVerb = (text: string): text is Verb => Object.hasOwn(CLAUSES, text);

function checkItem(verb: Verb, item: Expr): void {
  const { kinds, refusal } = CLAUSES[verb];
  const type = item.type!;
  if (type.kind !== 'dyn' && !kinds.includes(type.kind)) {
    throw new FormatFault(`error during formatting: ${refusal}, was given ${typeName(type)}`, item.at);
  }
  if (verb !== 's') return;
  if (item.op === 'list') for (const { value } of item.items) checkItem('s', value);
  if (item.op === 'map') {
    for (const { key, value } of item.entries) {
      checkItem('s', key);
      checkItem('s', value);
    }
  }
}

/** Without parameters. */
const typeName = (type: CelType): string => fullTypeName({ ...type, params: [] });
