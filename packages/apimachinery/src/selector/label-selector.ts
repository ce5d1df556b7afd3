/**
 * Label selectors: the text form of `?labelSelector=` and the object form of meta/v1 LabelSelector. Grammar, quirks
 * (`x in (,)`, a value named `in`) and error texts are those of apimachinery's labels package.
 */
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import { checkLabelValue, checkQualifiedName } from '../meta/name-rules.ts';
import { badRequest } from '../meta/status.ts';

export type LabelOperator = 'in' | 'notin' | '=' | '==' | '!=' | 'exists' | '!' | 'gt' | 'lt';

export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Sorted, without doubles; empty for exists and !. */
  readonly values: readonly string[];
}

/** All requirements must hold. `nothing` selects no object at all (an absent selector in an API object). */
export interface LabelSelector {
  readonly requirements: readonly LabelRequirement[];
  readonly nothing?: true;
}

/** meta/v1 LabelSelector as it stands in API objects. */
export interface LabelSelectorObject {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

export const EVERYTHING: LabelSelector = Object.freeze({ requirements: Object.freeze([]) });
export const NOTHING: LabelSelector = Object.freeze({ requirements: Object.freeze([]), nothing: true });

/**
 * Parses a selector; '' selects everything.
 * @throws ApiError 400 with the text of the first mistake, or for a text above 64 KiB
 */
export function parseLabelSelector(text: string): LabelSelector {
  if (text === '') return EVERYTHING;
  if (text.length > MAX_SELECTOR_TEXT) throw badRequest(`a selector may have ${MAX_SELECTOR_TEXT} characters`);
  const requirements = new Parser(scan(text)).parse();
  return requirements.length === 0 ? EVERYTHING : { requirements: sortByKey(requirements) };
}

/** Text of one selector: parsing this much takes some milliseconds, and it is matched with many objects. */
export const MAX_SELECTOR_TEXT = 64 * 1024;

const INT64 = /^[+-]?[0-9]{1,19}$/;
function parseInt64(text: string): bigint | undefined {
  if (!INT64.test(text)) return undefined;
  const value = BigInt(text[0] === '+' ? text.slice(1) : text);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

/** Tells whether a set of labels meets every requirement. */
export function matchesLabels(
  selector: LabelSelector,
  labels: Readonly<Record<string, string>> | undefined | null,
): boolean {
  if (selector.nothing) return false;
  for (const requirement of selector.requirements) {
    const value = labels && Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined;
    if (!meets(requirement, value)) return false;
  }
  return true;
}

/** Values of one requirement that are looked through one by one. */
const FEW_VALUES = 16;
const valueSets = new WeakMap<readonly string[], ReadonlySet<string>>();

function holds(values: readonly string[], value: string): boolean {
  if (values.length <= FEW_VALUES) return values.includes(value);
  return getOrInsert(valueSets, values, (many) => new Set(many)).has(value);
}

function meets({ operator, values }: LabelRequirement, value: string | undefined): boolean {
  switch (operator) {
    case 'in':
    case '=':
    case '==':
      return value !== undefined && holds(values, value);
    case 'notin':
    case '!=':
      return value === undefined || !holds(values, value);
    case 'exists':
      return value !== undefined;
    case '!':
      return value === undefined;
    case 'gt':
    case 'lt': {
      const left = value === undefined ? undefined : parseInt64(value);
      const right = parseInt64(values[0] ?? '');
      if (left === undefined || right === undefined) return false;
      return operator === 'gt' ? left > right : left < right;
    }
  }
}

/** The text form; sorted by key. `fromLabelSelectorObject(undefined)` has none and gives ''. */
export function formatLabelSelector(selector: LabelSelector): string {
  return selector.requirements.map(formatRequirement).join(',');
}

function formatRequirement({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'in':
    case 'notin':
      return `${key} ${operator} (${values.join(',')})`;
    case 'exists':
      return key;
    case '!':
      return `!${key}`;
    case 'gt':
      return `${key}>${values[0]}`;
    case 'lt':
      return `${key}<${values[0]}`;
    default:
      return `${key}${operator}${values[0]}`;
  }
}

const OBJECT_OPERATORS: Readonly<Record<string, LabelOperator>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
};

/**
 * The selector of an API object: undefined or null selects nothing, an empty object everything.
 * @throws ApiError 400 for an unknown operator or a malformed key or value
 */
export function fromLabelSelectorObject(object: LabelSelectorObject | undefined | null): LabelSelector {
  if (object === undefined || object === null) return NOTHING;
  const requirements: LabelRequirement[] = [];
  for (const [key, value] of Object.entries(object.matchLabels ?? {})) {
    requirements.push(newRequirement(key, '=', [value]));
  }
  for (const { key, operator, values } of object.matchExpressions ?? []) {
    const op = Object.hasOwn(OBJECT_OPERATORS, operator) ? OBJECT_OPERATORS[operator] : undefined;
    if (op === undefined) throw badRequest(`"${operator}" is not a valid label selector operator`);
    requirements.push(newRequirement(key, op, values ?? []));
  }
  return requirements.length === 0 ? EVERYTHING : { requirements: sortByKey(requirements) };
}

/** The same; what no API server would have accepted selects nothing, so that one bad object does not stop all others. */
export function readableSelector(object: LabelSelectorObject | undefined | null): LabelSelector {
  try {
    return fromLabelSelectorObject(object);
  } catch {
    return NOTHING;
  }
}

const sortByKey = (list: LabelRequirement[]): LabelRequirement[] =>
  list.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));

function newRequirement(key: string, operator: LabelOperator, values: readonly string[]): LabelRequirement {
  const problem = requirementProblem(key, operator, values);
  if (problem !== undefined) throw badRequest(problem);
  return { key, operator, values: [...new Set(values)].sort() };
}

function requirementProblem(key: string, operator: LabelOperator, values: readonly string[]): string | undefined {
  const problems: string[] = [];
  const keyErrors = checkQualifiedName(key);
  if (keyErrors.length > 0) problems.push(`key: Invalid value: ${JSON.stringify(key)}: ${keyErrors.join('; ')}`);
  const listed = `values: Invalid value: ${JSON.stringify(values)}`;
  switch (operator) {
    case 'in':
    case 'notin':
      if (values.length === 0) problems.push(`${listed}: for 'in', 'notin' operators, values set can't be empty`);
      break;
    case 'exists':
    case '!':
      if (values.length > 0) problems.push(`${listed}: values set must be empty for exists and does not exist`);
      break;
    case 'gt':
    case 'lt': {
      const [value = ''] = values;
      const first = `values[0]: Invalid value: ${JSON.stringify(value)}`;
      if (parseInt64(value) !== undefined) break;
      problems.push(`${first}: for 'Gt', 'Lt' operators, the value must be an integer`);
    }
  }
  values.forEach((value, i) => {
    const errors = checkLabelValue(value);
    if (errors.length > 0) {
      problems.push(`values[${i}][${key}]: Invalid value: ${JSON.stringify(value)}: ${errors.join('; ')}`);
    }
  });
  if (problems.length === 0) return undefined;
  return problems.length === 1 ? problems[0] : `[${problems.join(', ')}]`;
}

type TokenKind = 'identifier' | 'end' | ')' | ',' | '!' | '==' | '=' | '>' | '<' | '!=' | '(' | 'in' | 'notin';
interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

/** A sign, the longest first, or a word; what is between them is blank. */
const TOKEN = /(==|!=|[=!(),><])|[^ \t\r\n=!(),><]+/g;

function scan(text: string): Token[] {
  const tokens = Array.from(text.matchAll(TOKEN), ([found, sign]): Token => {
    const isOperator = sign !== undefined || found === 'in' || found === 'notin';
    return { kind: isOperator ? (found as TokenKind) : 'identifier', text: found };
  });
  return [...tokens, { kind: 'end', text: '' }];
}

const TEXT_OPERATORS = new Map<TokenKind, LabelOperator>([
  ...(['in', 'notin', '=', '==', '!='] as const).map((sign) => [sign, sign] as const),
  ['>', 'gt'],
  ['<', 'lt'],
]);
const inRequirement = (text: string): Error => badRequest(`unable to parse requirement: ${text}`);

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  /** `in` and `notin` are operators only where an operator is expected. */
  #peek(operatorWanted = false): Token {
    const token = this.#tokens[Math.min(this.#at, this.#tokens.length - 1)]!;
    const isWord = token.kind === 'in' || token.kind === 'notin';
    return isWord && !operatorWanted ? { kind: 'identifier', text: token.text } : token;
  }
  #take(operatorWanted = false): Token {
    const token = this.#peek(operatorWanted);
    this.#at++;
    return token;
  }

  parse(): LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    for (;;) {
      const first = this.#peek();
      if (first.kind === 'end') return requirements;
      if (first.kind !== 'identifier' && first.kind !== '!') {
        throw badRequest(`found '${first.text}', expected: !, identifier, or 'end of string'`);
      }
      requirements.push(this.#requirement());
      const next = this.#take();
      if (next.kind === 'end') return requirements;
      if (next.kind !== ',') throw badRequest(`found '${next.text}', expected: ',' or 'end of string'`);
      const after = this.#peek();
      if (after.kind !== 'identifier' && after.kind !== '!') {
        throw badRequest(`found '${after.text}', expected: identifier after ','`);
      }
    }
  }

  #requirement(): LabelRequirement {
    const absent = this.#peek().kind === '!';
    if (absent) this.#take();
    const token = this.#take();
    if (token.kind !== 'identifier') throw inRequirement(`found '${token.text}', expected: identifier`);
    const key = token.text;
    const keyErrors = checkQualifiedName(key);
    if (keyErrors.length > 0) {
      throw inRequirement(`<nil>: Invalid value: ${JSON.stringify(key)}: ${keyErrors.join('; ')}`);
    }
    const next = this.#peek().kind;
    if (absent || next === 'end' || next === ',') return this.#checked(key, absent ? '!' : 'exists', []);
    const operator = this.#operator();
    return this.#checked(key, operator, operator === 'in' || operator === 'notin' ? this.#list() : [this.#value()]);
  }

  #checked(key: string, operator: LabelOperator, values: readonly string[]): LabelRequirement {
    const distinct = [...new Set(values)].sort();
    const problem = requirementProblem(key, operator, distinct);
    if (problem !== undefined) throw inRequirement(problem);
    return { key, operator, values: distinct };
  }

  #operator(): LabelOperator {
    const { kind, text } = this.#take(true);
    const operator = TEXT_OPERATORS.get(kind);
    if (operator === undefined) throw inRequirement(`found '${text}', expected: in, notin, =, ==, !=, gt, lt`);
    return operator;
  }

  #value(): string {
    const next = this.#peek();
    if (next.kind === 'end' || next.kind === ',') return '';
    const token = this.#take();
    if (token.kind !== 'identifier') throw inRequirement(`found '${token.text}', expected: identifier`);
    return token.text;
  }

  /** `(a,b)`; empty places count as the empty value. */
  #list(): string[] {
    const open = this.#take();
    if (open.kind !== '(') throw inRequirement(`found '${open.text}' expected: '('`);
    const values: string[] = [];
    let expectValue = true;
    let isFirst = true;
    for (; ; isFirst = false) {
      const token = this.#take();
      if (token.kind === ')') {
        if (expectValue) values.push('');
        return values;
      }
      if (token.kind === ',') {
        if (expectValue) values.push('');
        expectValue = true;
      } else if (token.kind === 'identifier' && expectValue) {
        values.push(token.text);
        expectValue = false;
      } else {
        const later = expectValue ? "',', or identifier" : "',' or ')'";
        throw inRequirement(`found '${token.text}', expected: ${isFirst ? "',', ')' or identifier" : later}`);
      }
    }
  }
}
