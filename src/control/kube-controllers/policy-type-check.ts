/**
 * What the types of the kinds that a ValidatingAdmissionPolicy is about say of its expressions
 * (policy/validating/typechecking.go). It warns and never changes what is enforced: there everything is dynamic.
 */
import { CelCompileError, type CelType, celTypeOfSchema, compileCel, DYN } from '../../api/cel/cel.ts';
import { expressionVariables, typeOfVariables } from '../../api/kinds/builtin/policy-expressions.ts';
import type { DeepReadonly, KubeObject } from '../../api/meta/object.ts';
import type { Schema } from '../../api/schema/schema.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { nextTurn } from '../../base/clock/next-turn.ts';

/** Kinds of one rule that a policy is checked against at most. */
const MAX_TYPES = 10;

export interface CheckedPolicy extends KubeObject {
  spec?: {
    paramKind?: { apiVersion: string; kind: string };
    matchConstraints?: {
      resourceRules?: { apiGroups?: string[]; apiVersions?: string[]; resources?: string[] }[];
    };
    variables?: { name: string; expression: string }[];
    validations?: { expression: string; messageExpression?: string }[];
  };
  status?: { observedGeneration?: number; typeChecking?: { expressionWarnings?: ExpressionWarning[] } };
}

export interface ExpressionWarning {
  readonly fieldRef: string;
  readonly warning: string;
}

/** One version of a served kind. */
export interface TypedKind {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
  readonly schema: Schema;
}

/** The warnings of a policy; none where its rules name no kind outright. Others have their turn between expressions. */
export async function typeWarnings(
  { spec = {} }: DeepReadonly<CheckedPolicy>,
  kinds: readonly TypedKind[],
  clock: Pick<Clock, 'turnIsLong'>,
): Promise<ExpressionWarning[]> {
  const params = paramsType(spec, kinds);
  const environments: { kind: TypedKind; names: Record<string, CelType> }[] = [];
  for (const kind of checkedKinds(spec, kinds))
    environments.push({ kind, names: await namesFor(spec, { kind, params, clock }) });
  const warnings: ExpressionWarning[] = [];
  const check = async (fieldRef: string, expression: string): Promise<void> => {
    const faults: string[] = [];
    for (const { kind, names } of environments) {
      if (clock.turnIsLong()) await nextTurn();
      const fault = faultOf(expression, names);
      // Each ends with a line break of its own.
      if (fault !== undefined) faults.push(`${kind.group}/${kind.version}, Kind=${kind.kind}: ${fault}\n`);
    }
    if (faults.length > 0) warnings.push({ fieldRef, warning: faults.join('\n') });
  };
  for (const [i, { expression, messageExpression }] of (spec.validations ?? []).entries()) {
    await check(`spec.validations[${i}].expression`, expression);
    if (messageExpression) await check(`spec.validations[${i}].messageExpression`, messageExpression);
  }
  return warnings;
}

/**
 * Kinds whose group, version and resource stand in a rule, without a wildcard and without a subresource; after the tenth
 * of one rule no more are looked for. The core group has no name, which upstream's RESTMapper takes for any group: a rule
 * about `events` is checked against those of events.k8s.io as well.
 */
function checkedKinds(
  { matchConstraints }: NonNullable<DeepReadonly<CheckedPolicy>['spec']>,
  kinds: readonly TypedKind[],
): TypedKind[] {
  const found = new Set<TypedKind>();
  for (const { apiGroups = [], apiVersions = [], resources = [] } of matchConstraints?.resourceRules ?? []) {
    if ([...apiGroups, ...apiVersions].some((name) => name.includes('*'))) continue;
    const [groups, versions, names] = [new Set(apiGroups), new Set(apiVersions), new Set(resources)];
    const named = kinds
      .filter(({ version, resource }) => versions.has(version) && names.has(resource))
      .flatMap((kind) => [...new Set(['', kind.group])].map((group) => ({ group, kind })))
      .filter(({ group }) => groups.has(group))
      .sort((a, b) => compare(a.group, b.group) || byVersionAndResource(a.kind, b.kind));
    for (const { kind } of named.slice(0, MAX_TYPES)) found.add(kind);
    if (named.length >= MAX_TYPES) break;
  }
  return [...found].sort(byGroupVersionKind);
}

const byVersionAndResource = (a: TypedKind, b: TypedKind): number =>
  compare(a.version, b.version) || compare(a.resource, b.resource);

const byGroupVersionKind = (a: TypedKind, b: TypedKind): number =>
  compare(a.group, b.group) || compare(a.version, b.version) || compare(a.kind, b.kind);

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function paramsType(
  { paramKind }: NonNullable<DeepReadonly<CheckedPolicy>['spec']>,
  kinds: readonly TypedKind[],
): CelType | undefined {
  if (!paramKind) return undefined;
  const found = kinds.find(
    ({ group, version, kind }) =>
      kind === paramKind.kind && paramKind.apiVersion === (group === '' ? version : `${group}/${version}`),
  );
  return found ? celTypeOfSchema(found.schema) : DYN;
}

/** The names an expression may use on objects of a kind; a variable that does not compile is dynamic. */
async function namesFor(
  { variables = [] }: NonNullable<DeepReadonly<CheckedPolicy>['spec']>,
  {
    kind,
    params,
    clock,
  }: {
    readonly kind: TypedKind;
    readonly params: CelType | undefined;
    readonly clock: Pick<Clock, 'turnIsLong'>;
  },
): Promise<Record<string, CelType>> {
  const object = celTypeOfSchema(kind.schema);
  const fields: Record<string, CelType> = {};
  const names = (): Record<string, CelType> => {
    const all = expressionVariables({ params, authorizer: true, object, variables: typeOfVariables(fields) });
    // Nobody declares it to the checker, so that a use of it is a warning.
    delete all['authorizer.requestResource'];
    return all;
  };
  for (const { name, expression } of variables) {
    if (clock.turnIsLong()) await nextTurn();
    let type = DYN;
    try {
      type = compileCel(expression, { variables: names() }).resultType;
    } catch (error) {
      if (!(error instanceof CelCompileError)) throw error;
    }
    fields[name] = type;
  }
  return names();
}

function faultOf(expression: string, variables: Record<string, CelType>): string | undefined {
  try {
    compileCel(expression, { variables });
    return undefined;
  } catch (error) {
    if (error instanceof CelCompileError) return error.issues;
    throw error;
  }
}
