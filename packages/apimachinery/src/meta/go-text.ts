/**
 * Values as Go prints them in error texts (field.Error of apimachinery): `%q` for strings, `%v` for numbers, and
 * json.Marshal, which keeps `<`, `>` and `&` out of its strings, for all else.
 */

/** Characters that Go escapes by a letter. */
export const GO_ESCAPES: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '"': '\\"',
  '\\': '\\\\',
};
/** What unicode.IsPrint takes for printable, less the two that are escaped anyway. */
const PLAIN = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u;
const NOT_PLAIN = /["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** A string between quotes, as strconv.Quote has it. */
export function goQuote(text: string): string {
  if (PLAIN.test(text) && !/["\\]/.test(text)) return `"${text}"`;
  const escaped = text.replace(NOT_PLAIN, (char) => {
    const short = GO_ESCAPES[char];
    if (short !== undefined) return short;
    const point = char.codePointAt(0)!;
    const hex = point.toString(16);
    if (point < 0x80) return `\\x${hex.padStart(2, '0')}`;
    return point > 0xffff ? `\\U${hex.padStart(8, '0')}` : `\\u${hex.padStart(4, '0')}`;
  });
  return `"${escaped}"`;
}

/** A list of texts as Go prints it with %q. */
export const goQuoteAll = (list: readonly string[]): string => `[${list.map(goQuote).join(' ')}]`;

/** The JSON type of a value, as errors name it. */
export function jsonKind(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value === 'bigint' ? 'number' : typeof value;
}

/** What is wrong with a value of another JSON type than `type`: of a whole document, or of the member `field`. */
export const wrongType = (value: unknown, type: string, field = ''): string =>
  wrongTypeText(type, jsonKind(value), field);

export const wrongTypeText = (expected: string, got: string, field: string): string =>
  `${field === '' ? '' : `${field}: `}expected ${expected}, got ${got}`;

/** True for a number that Go reads from JSON as an int64; others are float64. */
export const isInt64 = (value: number): boolean => Number.isInteger(value) && Math.abs(value) < 2 ** 63;

/** A float64 as `%v` prints it: the shortest digits, with an exponent below 1e-4 and from 1e6 on. */
export function goFloat(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const shortest = value.toExponential();
  const exponent = Number(shortest.slice(shortest.indexOf('e') + 1));
  if (exponent >= -4 && exponent < 6) return String(value);
  // Go writes an exponent with two digits at least.
  return shortest.replace(/e([+-])(\d)$/, 'e$10$2');
}

/** A number out of JSON as `%v` prints it. */
export const goNumber = (value: number): string => (isInt64(value) ? String(value) : goFloat(value));

/** JSON as json.Marshal writes it. Members stay in their order: Go's is that of the struct, or sorted for a map. */
export const goJson = (value: unknown): string =>
  (JSON.stringify(value) ?? 'null').replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** JSON of free content, which Go holds in maps: members sorted by name at every depth. */
export function sortMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortMembers);
  if (typeof value !== 'object' || value === null) return value;
  const object = value as Record<string, unknown>;
  const sorted: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(object).sort()) sorted[key] = sortMembers(object[key]);
  return sorted;
}

/** A value as a field error shows it. */
export function goValue(value: unknown): string {
  if (typeof value === 'string') return goQuote(value);
  return typeof value === 'number' ? goNumber(value) : goJson(value);
}
