/**
 * What a definition's status should say: which of its names are free, and whether it can be served
 * (apiextensions controller/status/naming_controller.go and establish/). Pure.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { approvalCondition } from '../kinds/custom/api-approval.ts';
import { caBundleProblem } from '../kinds/custom/conversion-rules.ts';
import { type Crd, type CrdCondition, type CrdNames, conditionOf, withCondition } from '../kinds/custom/crd.ts';

/** Names that definitions of the group have been given. */
export interface TakenNames {
  readonly resources: ReadonlySet<string>;
  readonly kinds: ReadonlySet<string>;
}

/** Collects the names that definitions were given. */
export function takenNames(accepted: Iterable<CrdNames | undefined>): TakenNames {
  const all = [...accepted].filter((names) => names !== undefined);
  return {
    resources: present(all.flatMap(({ plural, singular, shortNames = [] }) => [plural, singular, ...shortNames])),
    kinds: present(all.flatMap(({ kind, listKind }) => [kind, listKind])),
  };
}

const present = (names: readonly (string | undefined)[]): ReadonlySet<string> =>
  new Set(names.flatMap((name) => name || []));

export interface DefinitionStatus {
  readonly conditions: readonly CrdCondition[];
  readonly acceptedNames: CrdNames;
  readonly storedVersions: readonly string[];
  readonly observedGeneration?: number;
}

/**
 * The status that follows from the definition and the names `taken` by others; `now` is a formatted time. A definition
 * that was established once stays so, with the names it has. One that has all the names it wants is validated no more: what
 * was said about its names stays.
 */
export function definitionStatus(crd: Crd, taken: TakenNames, now: string): DefinitionStatus {
  const { names, problem } = acceptNames(crd, taken);
  const settled = deepEqual(withoutEmpty(crd.spec.names), withoutEmpty(crd.status?.acceptedNames));
  const before = conditionOf(crd.status, 'NamesAccepted');
  let conditions = crd.status?.conditions ?? [];
  const put = (condition: Omit<CrdCondition, 'lastTransitionTime'>): void => {
    conditions = withCondition(conditions, condition, now);
  };
  if (!settled || before === undefined) {
    const status = problem === undefined ? 'True' : 'False';
    put({ type: 'NamesAccepted', status, ...(problem ?? { reason: 'NoConflicts', message: 'no conflicts found' }) });
  }
  if (conditionOf(crd.status, 'Established')?.status !== 'True') {
    put({ type: 'Established', ...establishment(crd, problem) });
  }
  const approval = approvalCondition(crd);
  if (approval !== undefined) put(approval);
  const { generation } = crd.metadata;
  return {
    conditions,
    acceptedNames: names,
    storedVersions: crd.status?.storedVersions ?? [],
    ...(generation !== undefined && { observedGeneration: generation }),
  };
}

type Problem = { readonly reason: string; readonly message: string };

/** What becomes of a definition that was never established. */
function establishment({ spec }: Crd, problem: Problem | undefined): Problem & Pick<CrdCondition, 'status'> {
  if (problem !== undefined) {
    return { status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' };
  }
  if (caBundleProblem(spec.conversion?.webhook?.clientConfig?.caBundle) !== undefined) {
    return { status: 'False', reason: 'InvalidCABundle', message: 'The conversion webhook CABundle is invalid' };
  }
  return { status: 'True', reason: 'InitialNamesAccepted', message: 'the initial names have been accepted' };
}

const withoutEmpty = (names: CrdNames | undefined): object =>
  Object.fromEntries(Object.entries(names ?? {}).filter(([, value]) => value.length > 0));

/**
 * Every name that is free, or ours in the same place, is taken over; the last conflict is the one that is reported. A name
 * that is ours in another place (the singular that was a short name) is in use.
 */
function acceptNames(crd: Crd, taken: TakenNames): { readonly names: CrdNames; readonly problem: Problem | undefined } {
  const wanted = crd.spec.names;
  const ours = crd.status?.acceptedNames;
  const own = takenNames([ours]);
  const resources = taken.resources.union(own.resources);
  const kinds = taken.kinds.union(own.kinds);
  const names: { -readonly [K in keyof CrdNames]: CrdNames[K] } = { plural: '', kind: '', ...ours };
  let problem: Problem | undefined;
  const conflict = (reason: string, used: readonly string[]): void => {
    const texts = [...new Set(used)].map((name) => `${JSON.stringify(name)} is already in use`);
    problem = { reason, message: texts.length === 1 ? texts[0]! : `[${texts.join(', ')}]` };
  };
  type Field = 'plural' | 'singular' | 'kind' | 'listKind';
  const take = (field: Field, used: ReadonlySet<string>, reason: string): void => {
    const name = wanted[field];
    if (name === undefined) return;
    if (name !== ours?.[field] && used.has(name)) conflict(reason, [name]);
    else names[field] = name;
  };
  take('plural', resources, 'PluralConflict');
  take('singular', resources, 'SingularConflict');
  if (!deepEqual(wanted.shortNames ?? [], ours?.shortNames ?? [])) {
    const kept = new Set(ours?.shortNames);
    const used = (wanted.shortNames ?? []).filter((name) => !kept.has(name) && resources.has(name));
    if (used.length > 0) conflict('ShortNamesConflict', used);
    else names.shortNames = wanted.shortNames ?? [];
  }
  take('kind', kinds, 'KindConflict');
  take('listKind', kinds, 'ListKindConflict');
  names.categories = wanted.categories ?? [];
  for (const field of ['shortNames', 'categories'] as const) if (names[field]?.length === 0) delete names[field];
  return { names, problem };
}
