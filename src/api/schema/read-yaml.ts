/**
 * YAML bodies to JSON values, as Kubernetes does it (sigs.k8s.io/yaml, a YAML 1.1 flavour: `yes`, `on` and `y` are true,
 * `0777` is octal, but dates and `1:30` stay text).
 */
import { type Document, isMap, isScalar, isSeq, type Node, parseDocument, type ScalarTag, type Tags } from 'yaml';
import { setOwn } from '../meta/own-property.ts';
import { badRequest } from '../meta/status.ts';
import { inexactNumber, MAX_DEPTH, type ParsedJson, parseJson } from './read-json.ts';

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
export function parseYaml(text: string): ParsedJson {
  if (/^\s*\{/.test(text)) {
    try {
      return parseJson(encoder.encode(text));
    } catch (error) {
      // Flow-style YAML may start with a brace as well: a mere syntax error leaves the verdict to its own parser.
      if (!(error as Error).message.startsWith('json parse error')) throw error;
    }
  }
  const { document, value } = load(text);
  const paths: string[] = [];
  if (document.contents !== null) findDuplicates(document.contents as Node, '', paths);
  return { value, duplicates: () => [...paths] };
}

function load(text: string): { document: Document; value: unknown } {
  try {
    const document = parseDocument(text.replace(/\n(---|\.\.\.)\s*$/, '\n'), {
      version: '1.1',
      customTags: kubernetesTags,
      intAsBigInt: true,
      uniqueKeys: false,
      logLevel: 'error',
      strict: true,
      merge: true,
    });
    const problem = document.errors[0];
    if (problem !== undefined) {
      // The parser reports its own stack's end as a mistake at the line it had reached.
      const deep = problem.message.includes('call stack');
      throw badRequest(`yaml: ${deep ? `exceeded the maximum depth of ${MAX_DEPTH}` : describe(problem)}`);
    }
    const loose: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    return { document, value: toJson(loose, '', { left: MAX_EXPANDED, depth: 0 }) };
  } catch (error) {
    if (error instanceof Error && error.name === 'ApiError') throw error;
    throw badRequest(`yaml: ${(error as Error).message}`);
  }
}

const describe = (problem: { code: string; message: string; linePos?: readonly { line: number }[] }): string => {
  if (problem.code === 'MULTIPLE_DOCS') return 'a single document is expected, found several';
  const line = problem.linePos?.[0]?.line;
  const first = problem.message.split('\n')[0]!.replace(/ at line \d+, column \d+:$/, '');
  return line === undefined ? first : `line ${line}: ${first}`;
};

const INT = 'tag:yaml.org,2002:int';
const FLOAT = 'tag:yaml.org,2002:float';

/** Decimal, 0x, 0o, 0b, and octal by a leading zero; underscores may part the digits. */
const intTag: ScalarTag = {
  tag: INT,
  default: true,
  test: /^[-+]?(?:0|[1-9][0-9_]*|0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+)$/,
  resolve(text) {
    const digits = text.replace(/[-+_]/g, '').replace(/^0(?=[0-9])/, '0o');
    return BigInt(digits) * (text.startsWith('-') ? -1n : 1n);
  },
};

/** Stricter than YAML 1.1, whose numbers include `e1000`: a digit has to come first, as in Go's parser. */
const floatTag: ScalarTag = {
  tag: FLOAT,
  default: true,
  test: /^[-+]?(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?$/,
  resolve: (text) => Number(text.replace(/_/g, '')),
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
  depth: number;
}

/** Copies aliases out, turns exact integers into numbers, and refuses what JSON cannot say. */
function toJson(value: unknown, path: string, budget: Budget): unknown {
  budget.left -= typeof value === 'string' ? value.length + 1 : 1;
  if (budget.left < 0) throw badRequest('yaml: document contains excessive aliasing');
  switch (typeof value) {
    case 'bigint':
      if (BigInt(Number(value)) !== value) throw inexactNumber(String(value), path);
      return Number(value);
    case 'number':
      if (!Number.isFinite(value)) throw badRequest(`yaml: ${value} at ${path || 'the root'} has no JSON form`);
      return value;
    case 'undefined':
      return null;
    case 'object':
      break;
    default:
      return value;
  }
  if (value === null) return null;
  if (++budget.depth > MAX_DEPTH) throw badRequest(`yaml: exceeded the maximum depth of ${MAX_DEPTH}`);
  let out: unknown;
  if (Array.isArray(value)) {
    out = value.map((item, i) => toJson(item, `${path}[${i}]`, budget));
  } else {
    const object: Record<string, unknown> = {};
    for (const [key, member] of value instanceof Map ? value : Object.entries(value)) {
      const name = String(key);
      setOwn(object, name, toJson(member, path === '' ? name : `${path}.${name}`, budget));
    }
    out = object;
  }
  budget.depth--;
  return out;
}

/** Keys given twice in one mapping, by path. */
function findDuplicates(node: unknown, path: string, found: string[]): void {
  if (isMap(node)) {
    const seen = new Set<string>();
    for (const pair of node.items) {
      const key = isScalar(pair.key) ? String(pair.key.value) : '?';
      const child = path === '' ? key : `${path}.${key}`;
      if (seen.has(key) && key !== '<<' && !found.includes(child) && found.length < MAX_FINDINGS) found.push(child);
      seen.add(key);
      findDuplicates(pair.value, child, found);
    }
  } else if (isSeq(node)) {
    node.items.forEach((item, i) => {
      findDuplicates(item, `${path}[${i}]`, found);
    });
  }
}
