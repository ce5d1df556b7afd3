/** Validation of apps and policy. */
import { equalSteps } from '../../../meta/deep-equal.ts';
import { checkLabelName, checkSubdomain } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import type { Steps } from '../../../meta/steps.ts';
import { isObject, type JsonObject, numberAt, objectAt, objectsAt, textAt, valueAt } from '../read-value.ts';
import { judgeSelectorField } from './admission-rules.ts';
import { judgeClaimSpec } from './claims.ts';
import { judgeConditions } from './conditions.ts';
import {
  faults,
  forbidden,
  type GroupValidators,
  invalid,
  type Judging,
  judgeImmutable,
  judgeNested,
  newJudging,
  nonNegative,
  oneOf,
  required,
  unsupported,
  unsupportedInOrder,
} from './field-errors.ts';
import {
  amountErrors,
  collisionErrors,
  counterErrors,
  isNone,
  judgeOwnSelector,
  judgeTemplate,
  keepsStatus,
  keptPodErrors,
  type Limit,
  shareErrors,
} from './workload-parts.ts';

interface Owner {
  readonly selector: string;
  readonly template: string;
}

// A Deployment's template is judged as that of its ReplicaSet, and the sentence about its selector is a ReplicaSet's, too.
const REPLICAS: Owner = { selector: 'deployment', template: 'ReplicaSet' };
const DAEMONS: Owner = { selector: 'daemonset', template: 'DaemonSet' };
const STATEFUL: Owner = { selector: 'statefulset', template: 'StatefulSet' };
const TEMPLATE = 'spec.template';

/** Selector and template of Deployments, ReplicaSets, StatefulSets and DaemonSets; `who` is what upstream calls them. */
function* judgeWorkload(
  judging: Judging,
  object: JsonObject,
  { who, old, claims = [] }: { readonly who: Owner; readonly old: unknown; readonly claims?: readonly JsonObject[] },
): Steps<void> {
  const spec = valueAt(object, 'spec');
  yield* judgeOwnSelector(judging, spec, who.selector);
  const template = valueAt(spec, 'template');
  yield* judgeTemplate(judging, template, { path: TEMPLATE, before: valueAt(old, 'spec', 'template'), claims });
  judging.errors.push(...keptPodErrors(valueAt(template, 'spec'), `${TEMPLATE}.spec`, who.template));
}

/** A kind whose spec is judged where it changes, and whose status where that does. */
const workload = (
  judgeSpec: (judging: Judging, object: JsonObject, old: JsonObject | undefined) => Steps<void>,
  statusErrors: (object: JsonObject, old: JsonObject) => FieldError[],
) =>
  function* (object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
    const judging = newJudging();
    const isKept =
      old !== undefined && (yield* equalSteps(valueAt(object, 'spec'), valueAt(old, 'spec'), judging.pace));
    if (!isKept) yield* judgeSpec(judging, object, old);
    if (old !== undefined && !keepsStatus(object, old)) judging.errors.push(...statusErrors(object, old));
    return judging.errors;
  };

const READY_LIMITS: readonly Limit[] = [
  ['readyReplicas', 'replicas', 'status.replicas'],
  ['availableReplicas', 'replicas', 'status.replicas'],
  ['availableReplicas', 'readyReplicas'],
];

const validateReplicaSet = workload(
  function* (judging, object, old) {
    for (const field of ['replicas', 'minReadySeconds']) judging.errors.push(...nonNegative(object, `spec.${field}`));
    yield* judgeWorkload(judging, object, { who: REPLICAS, old });
    if (old !== undefined) yield* judgeImmutable(judging, { object, old, path: 'spec.selector' });
  },
  (object) => replicaErrors(object),
);

/** Counters of ReplicaSets and ReplicationControllers. */
export const replicaErrors = (object: JsonObject): FieldError[] =>
  counterErrors(object, {
    counters: ['replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas', 'observedGeneration'],
    limits: [['fullyLabeledReplicas', 'replicas', 'status.replicas'], ...READY_LIMITS],
  });

const validateDeployment = workload(
  function* (judging, object, old) {
    const { errors } = judging;
    errors.push(...nonNegative(object, 'spec.replicas'));
    yield* judgeWorkload(judging, object, { who: REPLICAS, old });
    errors.push(...strategyErrors(object), ...nonNegative(object, 'spec.minReadySeconds'));
    errors.push(...nonNegative(object, 'spec.revisionHistoryLimit'));
    const deadline = valueAt(object, 'spec', 'progressDeadlineSeconds');
    if (typeof deadline === 'number') {
      const at = 'spec.progressDeadlineSeconds';
      errors.push(...nonNegative(object, at));
      if (deadline <= numberAt(object, 'spec', 'minReadySeconds')) {
        errors.push(invalid(at, deadline, 'must be greater than minReadySeconds'));
      }
    }
    if (old !== undefined) yield* judgeImmutable(judging, { object, old, path: 'spec.selector' });
  },
  (object, old) => [
    ...counterErrors(object, {
      counters: [
        ...['observedGeneration', 'replicas', 'updatedReplicas', 'readyReplicas'],
        ...['availableReplicas', 'unavailableReplicas', 'collisionCount'],
      ],
      limits: [['updatedReplicas', 'replicas', 'status.replicas'], ...READY_LIMITS],
    }),
    ...collisionErrors(object, old),
  ],
);

/** A strategy as upstream shows it: by the names of its internal type. */
const shownStrategy = (strategy: unknown): JsonObject => {
  const rolling = valueAt(strategy, 'rollingUpdate');
  const goName = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
  const shown = isObject(rolling)
    ? Object.fromEntries(Object.entries(rolling).map(([name, value]) => [goName(name), value]))
    : null;
  return { Type: textAt(strategy, 'type'), RollingUpdate: shown };
};

function strategyErrors(object: JsonObject): FieldError[] {
  const strategy = valueAt(object, 'spec', 'strategy');
  const at = 'spec.strategy';
  const type = valueAt(strategy, 'type');
  const rolling = valueAt(strategy, 'rollingUpdate');
  if (typeof type !== 'string') return [];
  if (type === 'Recreate') {
    const detail = "may not be specified when strategy `type` is 'Recreate'";
    return isObject(rolling) ? [forbidden(`${at}.rollingUpdate`, detail)] : [];
  }
  if (type !== 'RollingUpdate') return [unsupported(at, shownStrategy(strategy), ['Recreate', 'RollingUpdate'])];
  if (!isObject(rolling)) return [required(`${at}.rollingUpdate`, 'this should be defaulted and never be nil')];
  const unavailable = valueAt(rolling, 'maxUnavailable');
  const path = `${at}.rollingUpdate.maxUnavailable`;
  const errors = [
    ...amountErrors(unavailable, path),
    ...amountErrors(valueAt(rolling, 'maxSurge'), `${at}.rollingUpdate.maxSurge`),
  ];
  if (isNone(unavailable) && isNone(valueAt(rolling, 'maxSurge'))) {
    errors.push(invalid(path, unavailable ?? 0, 'may not be 0 when `maxSurge` is 0'));
  }
  return [...errors, ...shareErrors(unavailable, path)];
}

const validateDaemonSet = workload(
  function* (judging, object, old) {
    yield* judgeWorkload(judging, object, { who: DAEMONS, old });
    judging.errors.push(...nonNegative(object, 'spec.minReadySeconds'), ...daemonStrategyErrors(object));
    judging.errors.push(...nonNegative(object, 'spec.revisionHistoryLimit'));
    if (old !== undefined) yield* judgeImmutable(judging, { object, old, path: 'spec.selector' });
  },
  (object, old) => [
    ...counterErrors(object, {
      counters: [
        ...['currentNumberScheduled', 'numberMisscheduled', 'desiredNumberScheduled', 'numberReady'],
        ...['observedGeneration', 'updatedNumberScheduled', 'numberAvailable', 'numberUnavailable', 'collisionCount'],
      ],
    }),
    ...collisionErrors(object, old),
  ],
);

function daemonStrategyErrors(object: JsonObject): FieldError[] {
  const strategy = valueAt(object, 'spec', 'updateStrategy');
  const at = 'spec.updateStrategy';
  const type = valueAt(strategy, 'type');
  if (typeof type !== 'string' || type === 'OnDelete') return [];
  if (type !== 'RollingUpdate') {
    return [unsupportedInOrder(at, shownStrategy(strategy), ['RollingUpdate', 'OnDelete'])];
  }
  const rolling = valueAt(strategy, 'rollingUpdate');
  if (!isObject(rolling)) return [required(`${at}.rollingUpdate`)];
  const [unavailable, surge] = [valueAt(rolling, 'maxUnavailable'), valueAt(rolling, 'maxSurge')];
  const [unavailableAt, surgeAt] = [`${at}.rollingUpdate.maxUnavailable`, `${at}.rollingUpdate.maxSurge`];
  const errors = [...amountErrors(unavailable, unavailableAt), ...amountErrors(surge, surgeAt)];
  errors.push(...shareErrors(unavailable, unavailableAt), ...shareErrors(surge, surgeAt));
  if (isNone(unavailable) && isNone(surge)) {
    errors.push(required(unavailableAt, 'cannot be 0 when maxSurge is 0'));
  } else if (!isNone(unavailable) && !isNone(surge)) {
    errors.push(invalid(surgeAt, surge, 'may not be set when maxUnavailable is non-zero'));
  }
  return errors;
}

const STATEFUL_SET_FIXED =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
const STATEFUL_SET_FREE = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
];

const validateStatefulSet = workload(
  function* (judging, object, old) {
    const { errors, pace } = judging;
    const templates = objectsAt(object, 'spec', 'volumeClaimTemplates');
    if (old === undefined) errors.push(...longNameErrors(object));
    errors.push(...statefulErrors(objectAt(object, 'spec')));
    // These never change: of stored ones nothing more is said.
    const judgeClaim = (claim: JsonObject, i: number) =>
      judgeClaimSpec(judging, objectAt(claim, 'spec'), `spec.volumeClaimTemplates[${i}].spec`);
    if (old === undefined) yield* judgeNested(judging, templates, judgeClaim, CLAIM);
    for (const field of ['replicas', 'minReadySeconds', 'ordinals.start']) {
      errors.push(...nonNegative(object, `spec.${field}`));
    }
    const service = textAt(object, 'spec', 'serviceName');
    if (old === undefined && service !== '')
      errors.push(...faults('spec.serviceName', service, checkLabelName(service)));
    // Each Pod has a claim of its own under the name of the template.
    const claims = templates.map((claim) => ({
      name: textAt(claim, 'metadata', 'name'),
      persistentVolumeClaim: {},
    }));
    yield* judgeWorkload(judging, object, { who: STATEFUL, old, claims });
    if (old === undefined) return;
    const fixed = (set: JsonObject): JsonObject =>
      Object.fromEntries(Object.entries(objectAt(set, 'spec')).filter(([field]) => !STATEFUL_SET_FREE.includes(field)));
    const same = yield* equalSteps(fixed(object), fixed(old), pace);
    if (!same) errors.push(forbidden('spec', STATEFUL_SET_FIXED));
  },
  (object, old) => [
    ...counterErrors(object, {
      counters: [
        ...['replicas', 'readyReplicas', 'currentReplicas', 'updatedReplicas'],
        ...['availableReplicas', 'observedGeneration', 'collisionCount'],
      ],
      limits: [
        ['readyReplicas', 'replicas', 'status.replicas'],
        ['currentReplicas', 'replicas', 'status.replicas'],
        ['updatedReplicas', 'replicas', 'status.replicas'],
        ['availableReplicas', 'replicas', 'status.replicas'],
        ['availableReplicas', 'readyReplicas', 'status.readyReplicas'],
      ],
    }),
    ...collisionErrors(object, old),
  ],
);

/** What a claim counts as. */
const CLAIM = 8;

/** The names of its Pods are host names: whatever else may be called so, a StatefulSet has a label for a name. */
function longNameErrors(object: JsonObject): FieldError[] {
  const name = textAt(object, 'metadata', 'name');
  return checkSubdomain(name).length > 0 ? [] : faults('metadata.name', name, checkLabelName(name));
}

const KEEPING = ['Retain', 'Delete'];

function statefulErrors(spec: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const management = valueAt(spec, 'podManagementPolicy');
  if (typeof management === 'string' && management !== 'OrderedReady' && management !== 'Parallel') {
    errors.push(invalid('spec.podManagementPolicy', management, "must be 'OrderedReady' or 'Parallel'"));
  }
  const strategy = valueAt(spec, 'updateStrategy');
  const type = valueAt(strategy, 'type');
  const rolling = valueAt(strategy, 'rollingUpdate');
  const at = 'spec.updateStrategy';
  if (type === 'OnDelete') {
    const shown = shownStrategy(strategy)['RollingUpdate'];
    const detail = "only allowed for updateStrategy 'RollingUpdate'";
    if (isObject(rolling)) errors.push(invalid(`${at}.rollingUpdate`, shown, detail));
  } else if (type === 'RollingUpdate') {
    const unavailable = valueAt(rolling, 'maxUnavailable') ?? undefined;
    const path = `${at}.rollingUpdate.maxUnavailable`;
    errors.push(...nonNegative({ spec }, `${at}.rollingUpdate.partition`), ...amountErrors(unavailable, path));
    if (unavailable !== undefined && isNone(unavailable)) errors.push(invalid(path, unavailable, 'cannot be 0'));
    errors.push(...shareErrors(unavailable, path));
  } else if (typeof type === 'string') {
    errors.push(invalid(at, shownStrategy(strategy), "must be 'RollingUpdate' or 'OnDelete'"));
  }
  const kept = valueAt(spec, 'persistentVolumeClaimRetentionPolicy');
  for (const when of isObject(kept) ? ['whenDeleted', 'whenScaled'] : []) {
    const policy = textAt(kept, when);
    if (KEEPING.includes(policy)) continue;
    errors.push(unsupportedInOrder(`spec.persistentVolumeClaimRetentionPolicy.${when}`, policy, KEEPING));
  }
  return errors;
}

function* validateControllerRevision(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  if (valueAt(object, 'data') == null) judging.errors.push(required('data', 'data is mandatory'));
  judging.errors.push(...nonNegative(object, 'revision'));
  if (old !== undefined) yield* judgeImmutable(judging, { object, old, path: 'data' });
  return judging.errors;
}

function* validateBudget(object: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const { errors } = judging;
  const spec = valueAt(object, 'spec');
  const isSet = (field: string): boolean => valueAt(spec, field) !== undefined && valueAt(spec, field) !== null;
  if (isObject(spec) && isSet('minAvailable') && isSet('maxUnavailable')) {
    errors.push(invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set'));
  }
  for (const field of isSet('minAvailable') && isSet('maxUnavailable') ? [] : ['minAvailable', 'maxUnavailable']) {
    const amount = valueAt(spec, field);
    errors.push(...amountErrors(amount, `spec.${field}`), ...shareErrors(amount, `spec.${field}`));
  }
  yield* judgeSelectorField(judging, spec, { field: 'selector', at: 'spec' });
  const policy = { name: 'unhealthyPodEvictionPolicy', path: 'spec.unhealthyPodEvictionPolicy' };
  errors.push(...oneOf(spec, policy, ['AlwaysAllow', 'IfHealthyBudget']));
  yield* judgeConditions(judging, objectAt(object, 'status'), 'status');
  return errors;
}

export const APPS_VALIDATORS: GroupValidators = {
  deployments: validateDeployment,
  replicasets: validateReplicaSet,
  daemonsets: validateDaemonSet,
  statefulsets: validateStatefulSet,
  controllerrevisions: validateControllerRevision,
};

export const POLICY_VALIDATORS: GroupValidators = { poddisruptionbudgets: validateBudget };
