/**
 * matchConditions of an authorization webhook (apiserver/pkg/authorization/cel): expressions over `request`, the spec of
 * the SubjectAccessReview, that say whether the webhook is asked at all.
 */
import { BOOL, type CelProgram, celBudget, compileCel, listOf, mapOf, objectOf, STRING } from '@coracle/cel/cel';
import { type AccessReviewSpec, NO_ATTRIBUTES } from './access-review.ts';
import { aggregated } from './union.ts';

const selectorAttributes = (name: string) =>
  objectOf(`kubernetes.${name}`, {
    rawSelector: STRING,
    requirements: listOf(
      objectOf('kubernetes.SelectorRequirement', { key: STRING, operator: STRING, values: listOf(STRING) }),
    ),
  });

const REQUEST = objectOf('kubernetes.SubjectAccessReviewSpec', {
  resourceAttributes: objectOf('kubernetes.ResourceAttributes', {
    namespace: STRING,
    verb: STRING,
    group: STRING,
    version: STRING,
    resource: STRING,
    subresource: STRING,
    name: STRING,
    fieldSelector: selectorAttributes('FieldSelectorAttributes'),
    labelSelector: selectorAttributes('LabelSelectorAttributes'),
  }),
  nonResourceAttributes: objectOf('kubernetes.NonResourceAttributes', { path: STRING, verb: STRING }),
  user: STRING,
  groups: listOf(STRING),
  extra: mapOf(STRING, listOf(STRING)),
  uid: STRING,
});

/** What one expression may cost. All of them together have no bound but their number. */
const PER_CALL = 1_000_000;

/** Compiles one. Throws CelCompileError with upstream's words. */
export const compileAccessCondition = (expression: string): CelProgram =>
  compileCel(expression, { variables: { request: REQUEST }, resultTypes: [BOOL] });

/** One false condition decides, whatever fails beside it; `error` when none is false and one cannot be said. */
export function matchAccess(
  conditions: readonly CelProgram[],
  spec: AccessReviewSpec,
): { readonly matches: boolean; readonly error?: string } {
  if (conditions.length === 0) return { matches: true };
  const bindings = { request: requestOf(spec) };
  const errors: string[] = [];
  for (const condition of conditions) {
    try {
      if (condition.run(bindings, celBudget(PER_CALL, PER_CALL)) === false) return { matches: false };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      errors.push(`cel evaluation error: expression '${condition.expression}' resulted in error: ${why}`);
    }
  }
  const error = aggregated(errors);
  return error === undefined ? { matches: true } : { matches: false, error };
}

/** With every text, also an empty one, so that expressions need not ask whether it is there. */
function requestOf({ resourceAttributes, nonResourceAttributes, user, groups, extra, uid }: AccessReviewSpec) {
  return {
    user: user ?? '',
    groups: groups ?? [],
    uid: uid ?? '',
    extra: extra ?? {},
    ...(resourceAttributes && { resourceAttributes: { ...NO_ATTRIBUTES, ...resourceAttributes } }),
    ...(nonResourceAttributes && { nonResourceAttributes: { path: '', verb: '', ...nonResourceAttributes } }),
  };
}
