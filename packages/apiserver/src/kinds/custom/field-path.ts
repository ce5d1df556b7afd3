/** Simple paths into a schema: `.spec.color`, `.spec['a.b']`. Selectable fields and `fieldPath` of rules are such. */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { RawSchema } from './crd.ts';
import { propertyOf } from './structural-rules.ts';

export interface FoundField {
  /** As field errors name it: `spec.color`, `spec.labels[key]`. */
  readonly path: string;
  readonly steps: readonly string[];
  readonly schema: RawSchema;
}

/** Delimiters, single-quoted strings, and the names between them. */
const TOKEN = /'(?:\\.|[^'\\])*'|[.[\]]|[^.[\]']+|'/gy;
const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  "'": "'",
  '\\': '\\',
};

/** Follows `text` through `schema`; says what is wrong in upstream's words when it leads nowhere. */
export function findFieldPath(
  schema: RawSchema,
  text: string,
  options: { readonly allowBrackets?: boolean } = {},
): FoundField | { readonly problem: string } {
  const tokens = text.match(TOKEN) ?? [];
  let at = schema;
  let path = '';
  const steps: string[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    let name: string;
    if (token === '.') {
      const next = tokens[++i];
      if (next === undefined) return { problem: 'unexpected end of JSON path' };
      name = next;
    } else if (token === '[') {
      if (options.allowBrackets === false) return { problem: 'array notation is not allowed' };
      const quoted = tokens[++i];
      if (quoted === undefined) return { problem: 'unexpected end of JSON path' };
      if (quoted.length < 2 || !quoted.startsWith("'") || !quoted.endsWith("'")) {
        return { problem: `expected single quoted string but got ${quoted}` };
      }
      name = quoted.slice(1, -1).replaceAll(/\\(.)/g, (whole, char: string) => ESCAPES[char] ?? whole);
      const end = tokens[++i];
      if (end === undefined) return { problem: 'unexpected end of JSON path' };
      if (end !== ']') return { problem: `expected ] but got ${end}` };
    } else {
      return { problem: `expected [ or . but got: ${token}` };
    }
    const property = propertyOf(at, name);
    const rest = isJsonObject(at['properties']) ? undefined : at['additionalProperties'];
    if (property !== undefined) path += path === '' ? name : `.${name}`;
    else if (isJsonObject(rest)) path += `[${name}]`;
    else return { problem: 'does not refer to a valid field' };
    at = property ?? (rest as RawSchema);
    steps.push(name);
  }
  return { path, steps, schema: at };
}
