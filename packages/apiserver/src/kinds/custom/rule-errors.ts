/**
 * Rules of a definition's schema as they are admitted: they must compile against the types of their node, and what they
 * may cost at worst is bounded (apiextensions validation.go and cel_validation.go).
 */

import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { Schema, ValidationRule } from '@coracle/apimachinery/schema/schema';
import { forbidden, invalid } from '@coracle/apimachinery/validation/field-errors';
import {
  BOOL,
  CelCompileError,
  type CelProgram,
  type CelType,
  celTypeOfSchema,
  compileCel,
  STRING,
} from '@coracle/cel/cel';
import type { RawSchema } from './crd.ts';
import { type KnownSchemas, rootSchemaOf, toSchema } from './crd-schema.ts';
import { ruleVariables } from './rules.ts';
import { rulesOf } from './schema-rules.ts';
import { schemasIn, typeText } from './structural-rules.ts';

/** Static limits (StaticEstimatedCostLimit, StaticEstimatedCRDCostLimit). */
const RULE_LIMIT = 10_000_000;
const DEFINITION_LIMIT = 100_000_000;
/** How much JSON a request can hold: bounds how often a node occurs where nothing else does. */
const MAX_REQUEST_BYTES = 3 * 1024 * 1024;
/** The dearest rules are named when all together cost too much. */
const NAMED_RULES = 4;
const HIGHEST_COST = 2 ** 64;
/** A tenth of the highest size: what traversing a text of unknown size is estimated at. */
const UNKNOWN_COST = HIGHEST_COST / 16;

interface Found {
  readonly errors: FieldError[];
  /** Nodes whose rules are not looked at: something else is wrong there or below. */
  readonly faulty: ReadonlySet<RawSchema>;
  readonly costs: { readonly field: string; readonly cost: number }[];
  /** True leaves out what one rule may cost: it was accepted before. */
  readonly unchanged: boolean;
  readonly known: KnownSchemas;
}

/** Errors of every rule in the structural schema at `path`; `unchanged` when this very schema was accepted before. */
export function ruleErrors(
  schema: RawSchema,
  {
    path,
    unchanged,
    faulty,
  }: { readonly path: string; readonly unchanged: boolean; readonly faulty: ReadonlySet<RawSchema> },
): FieldError[] {
  const found: Found = { errors: [], costs: [], unchanged, faulty, known: new Map() };
  visit(schema, path, { root: true, cardinality: 1, uncorrelatable: undefined }, found);
  const total = found.costs.reduce((sum, { cost }) => Math.min(sum + cost, HIGHEST_COST), 0);
  if (total > DEFINITION_LIMIT) {
    const dearest = found.costs
      .filter(({ cost }) => cost >= DEFINITION_LIMIT / 100)
      .sort((a, b) => b.cost - a.cost)
      .slice(0, NAMED_RULES);
    for (const { field } of dearest) {
      found.errors.push(
        forbidden(field, 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema'),
      );
    }
    const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
    found.errors.push(forbidden(path, costText(what, total, DEFINITION_LIMIT)));
  }
  return found.errors;
}

/** What a node inherits from where it stands. */
interface Place {
  readonly root?: boolean;
  /** How often the node can occur in one object; undefined = only the size of a request bounds it. */
  readonly cardinality: number | undefined;
  /** The list or map from which on old and new values cannot be matched. */
  readonly uncorrelatable: string | undefined;
}

function visit(schema: RawSchema, path: string, place: Place, found: Found): void {
  const cardinality = times(place.cardinality, mostElements(schema));
  // Members of a map have names to be matched by, an atomic one's too.
  const mapType = schema['x-kubernetes-map-type'] ?? 'granular';
  const isKnownMap = mapType === 'granular' || mapType === 'atomic';
  for (const [step, child] of schemasIn(schema, ['additionalProperties', 'properties', 'items'])) {
    const isMatched = step === '.items' ? schema['x-kubernetes-list-type'] === 'map' : isKnownMap;
    const uncorrelatable = isMatched || step === '.additionalProperties' ? undefined : path;
    visit(child, path + step, { uncorrelatable: place.uncorrelatable ?? uncorrelatable, cardinality }, found);
  }
  if (rulesOf(schema).length > 0 && !found.faulty.has(schema)) checkRules(schema, path, place, found);
}

/** How many values a node may hold below each of its keywords; undefined = nothing bounds them. */
function mostElements(schema: RawSchema): number | undefined {
  const type = typeText(schema);
  const isMap = type === 'object' && (schema['additionalProperties'] ?? null) !== null;
  if (!isMap && type !== 'array') return 1;
  const most = schema[isMap ? 'maxProperties' : 'maxItems'];
  return typeof most === 'number' ? Math.max(most, 0) : undefined;
}

const times = (cardinality: number | undefined, most: number | undefined): number | undefined =>
  cardinality === undefined || most === undefined ? undefined : Math.min(cardinality * most, HIGHEST_COST);

/** Another name each time, as upstream, so that nobody builds on it: messages show it, `selfType123456789.spec`. */
let named = 0;
const selfTypeName = (): string => `selfType${Math.imul(++named, 0x9e3779b1) >>> 0}`;

function checkRules(raw: RawSchema, path: string, place: Place, found: Found): void {
  const whole = place.root || raw['x-kubernetes-embedded-resource'] === true;
  const schema: Schema = place.root ? rootSchemaOf(raw, found.known) : toSchema(raw, found.known);
  const self = celTypeOfSchema(schema, { root: whole, name: selfTypeName() });
  // As many as fit into a request, each with a comma behind it.
  const cardinality = place.cardinality ?? Math.floor(MAX_REQUEST_BYTES / ((self.minSize ?? 1) + 1));
  for (const [i, rule] of (rulesOf(raw) as unknown as ValidationRule[]).entries()) {
    const at = `${path}.x-kubernetes-validations[${i}]`;
    const program = compile(rule, { key: 'rule', at, self, found });
    if (program === undefined) {
      // Nothing is known of a rule that does not compile, so it does not use oldSelf either.
      if (rule.optionalOldSelf !== undefined) found.errors.push(needlessOldSelf(rule, at));
      continue;
    }
    observe(program, { field: `${at}.rule`, what: 'estimated rule cost', cardinality, found });
    checkOldSelf(rule, program, { at, place, found });
    if (typeof rule.messageExpression !== 'string' || rule.messageExpression === '') continue;
    const message = compile(rule, { key: 'messageExpression', at, self, found });
    // A message is made once, whatever it stands on. Where a part has no size that is known (`string(self.limit)`, which
    // the Kubernetes documentation itself recommends) the worst case says nothing, and the budget at run time decides.
    const what = 'estimated messageExpression cost';
    if (message !== undefined && message.estimatedCost < UNKNOWN_COST) {
      observe(message, { field: `${at}.messageExpression`, what, cardinality: 1, found });
    }
  }
}

function compile(
  rule: ValidationRule,
  about: {
    readonly key: 'rule' | 'messageExpression';
    readonly at: string;
    readonly self: CelType;
    readonly found: Found;
  },
): CelProgram | undefined {
  const { key, at, self, found } = about;
  const isRule = key === 'rule';
  try {
    const resultTypes = [isRule ? BOOL : STRING];
    return compileCel(rule[key]!, { variables: ruleVariables(self, rule), resultTypes });
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    const problem = isRule ? error.message : `messageExpression ${error.message}`;
    const detail = error.reason === 'result' ? OTHER_RESULT[key] : problem;
    found.errors.push(invalid(`${at}.${key}`, rule, detail));
    return undefined;
  }
}

/** The kind of result is reported in words of its own. */
const OTHER_RESULT = {
  rule: 'cel expression must evaluate to a bool',
  messageExpression: 'messageExpression must evaluate to a string',
};

function observe(
  program: CelProgram,
  about: { readonly field: string; readonly what: string; readonly cardinality: number; readonly found: Found },
): void {
  const { field, what, cardinality, found } = about;
  const cost = Math.min(program.estimatedCost * cardinality, HIGHEST_COST);
  if (cost > RULE_LIMIT && !found.unchanged) found.errors.push(forbidden(field, costText(what, cost, RULE_LIMIT)));
  found.costs.push({ field, cost });
}

function checkOldSelf(
  rule: ValidationRule,
  program: CelProgram,
  { at, place, found }: { readonly at: string; readonly place: Place; readonly found: Found },
): void {
  if (!program.references.has('oldSelf')) {
    if (rule.optionalOldSelf !== undefined) found.errors.push(needlessOldSelf(rule, at));
  } else if (place.uncorrelatable !== undefined) {
    const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${place.uncorrelatable}`;
    found.errors.push(invalid(`${at}.rule`, rule.rule, detail));
  }
}

const needlessOldSelf = (rule: ValidationRule, at: string): FieldError =>
  invalid(`${at}.optionalOldSelf`, rule.optionalOldSelf, 'may not be set if oldSelf is not used in rule');

function costText(what: string, cost: number, limit: number): string {
  const times = cost / limit;
  const factor = times > 100 ? 'more than 100x' : times < 1.5 ? `${times.toFixed(6)}x` : `${times.toFixed(1)}x`;
  return `${what} exceeds budget by factor of ${factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`;
}
