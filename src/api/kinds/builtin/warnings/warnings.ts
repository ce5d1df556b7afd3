/** Which kinds warn of what, on a create and on an update (WarningsOnCreate and WarningsOnUpdate of their strategies). */
import { checkLabelName } from '../../../meta/name-rules.ts';
import { finish, type Steps } from '../../../meta/steps.ts';
import type { ResourceInfo } from '../../resource.ts';
import { type JsonObject, numberAt, objectAt, objectsAt, textAt, valueAt } from '../read-value.ts';
import { claimWarnings } from './amounts.ts';
import { newCollecting, warnEach } from './collect.ts';
import {
  addressTypeWarnings,
  endpointWarnings,
  ingressWarnings,
  networkPolicyWarnings,
  podAddressWarnings,
  serviceWarnings,
  subsetWarnings,
} from './network.ts';
import { replacedLabel } from './node-labels.ts';
import { podSpecWarnings } from './pod-spec.ts';
import { storageCapacityWarnings, storageClassWarnings, volumeClaimWarnings, volumeWarnings } from './storage.ts';

type Warns = Pick<
  ResourceInfo,
  'warnings' | 'updateWarnings' | 'warningsSteps' | 'updateWarningsSteps' | 'statusWarnings'
>;
type Judge = (object: JsonObject) => string[];
/** Of kinds that may hold very much. */
type StepsJudge = (object: JsonObject) => Steps<string[]>;

const always = (judge: Judge): Warns => ({ warnings: judge, updateWarnings: judge });
const alwaysInSteps = (judge: StepsJudge): Warns => ({
  ...always((object) => finish(judge(object))),
  warningsSteps: judge,
  updateWarningsSteps: judge,
});

const NOTHING: Judge = () => [];
// biome-ignore lint/correctness/useYield: there is nothing to do in steps.
const NO_STEPS: StepsJudge = function* () {
  return [];
};

/** What is told besides what stands in a template. */
interface Besides {
  /** Before it, on a create. */
  readonly first?: Judge;
  /** After it, on a create and on an update. */
  readonly last?: StepsJudge;
  readonly lastOfUpdate?: StepsJudge;
}

/** Told in steps. A change of nothing but labels is not told again what is in the template. */
function perGeneration(
  judge: StepsJudge,
  { first = NOTHING, last = NO_STEPS, lastOfUpdate = NO_STEPS }: Besides = {},
): Required<Omit<Warns, 'statusWarnings'>> {
  function* ofCreate(object: JsonObject): Steps<string[]> {
    return [...first(object), ...(yield* judge(object)), ...(yield* last(object))];
  }
  function* ofUpdate(object: JsonObject, old: JsonObject): Steps<string[]> {
    const isSame = numberAt(object, 'metadata', 'generation') === numberAt(old, 'metadata', 'generation');
    return [...(isSame ? [] : yield* judge(object)), ...(yield* lastOfUpdate(object))];
  }
  return {
    warnings: (object) => finish(ofCreate(object)),
    warningsSteps: ofCreate,
    updateWarnings: (object, old) => finish(ofUpdate(object, old)),
    updateWarningsSteps: ofUpdate,
  };
}

const named =
  (use: string): Judge =>
  (object) => {
    const problems = checkLabelName(textAt(object, 'metadata', 'name'));
    return problems.length === 0
      ? []
      : [
          `metadata.name: this is used in ${use}, which can result in surprising behavior; a DNS label is recommended: [${problems.join(' ')}]`,
        ];
  };
const namesPods = named('Pod names and hostnames');
const namesHost = named("the Pod's hostname");

const templateAt =
  (...path: string[]): StepsJudge =>
  (object) =>
    podSpecWarnings(objectAt(object, ...path), path.join('.'));
const template = templateAt('spec', 'template');

/** On an update upstream names the claims in another way. */
function* statefulSetMore(set: JsonObject, suffix: '' | '.Spec'): Steps<string[]> {
  const to = newCollecting();
  const ofClaim = (claim: JsonObject, i: number): string[] =>
    claimWarnings(objectAt(claim, 'spec'), `spec.volumeClaimTemplates[${i}]${suffix}`);
  yield* warnEach(to, objectsAt(set, 'spec', 'volumeClaimTemplates'), ofClaim, CLAIM);
  if (numberAt(set, 'spec', 'revisionHistoryLimit') < 0) {
    to.found.push(
      'spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended',
    );
  }
  return to.found;
}

/** What looking at a claim counts as. */
const CLAIM = 3;

const jobAt = (...path: string[]): StepsJudge =>
  function* (object) {
    const spec = objectAt(object, ...path);
    const isHuge =
      textAt(spec, 'completionMode') === 'Indexed' &&
      numberAt(spec, 'completions') > 100_000 &&
      numberAt(spec, 'parallelism') > 10_000;
    return [
      ...(isHuge
        ? [
            `${path.join('.')}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail`,
          ]
        : []),
      ...(yield* templateAt(...path, 'template')(object)),
    ];
  };

const node: Judge = (object) => [
  ...(valueAt(object, 'spec', 'configSource') == null ? [] : ['spec.configSource: the feature is removed']),
  ...(textAt(object, 'spec', 'externalID') === ''
    ? []
    : ['spec.externalID: this field is deprecated, and is unused by Kubernetes']),
];

const ENFORCED = 'kubernetes.io/enforce-mountable-secrets';
const isEnforced = (account: JsonObject): boolean =>
  Object.hasOwn(objectAt(account, 'metadata', 'annotations'), ENFORCED);
const account: Judge = (object) =>
  isEnforced(object)
    ? [
        `metadata.annotations[${ENFORCED}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
      ]
    : [];

function* runtimeClass(object: JsonObject): Steps<string[]> {
  const to = newCollecting();
  yield* warnEach(to, Object.keys(objectAt(object, 'scheduling', 'nodeSelector')), (label) => {
    const why = replacedLabel(label);
    return why === undefined ? undefined : [`scheduling.nodeSelector: ${why}`];
  });
  return to.found;
}

function* newSlice(slice: JsonObject): Steps<string[]> {
  return [...addressTypeWarnings(slice), ...(yield* endpointWarnings(slice))];
}

const pod = perGeneration((object) => podSpecWarnings(object, ''), { first: namesHost });

const KINDS: Readonly<Record<string, Warns>> = {
  // Those who update Pods all day are no people.
  pods: { warnings: pod.warnings, warningsSteps: pod.warningsSteps, statusWarnings: podAddressWarnings },
  podtemplates: perGeneration(templateAt('template')),
  replicationcontrollers: perGeneration(template, { first: namesPods }),
  'deployments.apps': perGeneration(template, { first: namesPods }),
  'replicasets.apps': perGeneration(template, { first: namesPods }),
  'daemonsets.apps': perGeneration(template),
  'statefulsets.apps': perGeneration(template, {
    last: (set) => statefulSetMore(set, ''),
    lastOfUpdate: (set) => statefulSetMore(set, '.Spec'),
  }),
  'jobs.batch': perGeneration(jobAt('spec'), { first: namesPods }),
  'cronjobs.batch': perGeneration(jobAt('spec', 'jobTemplate', 'spec'), { first: namesPods }),
  endpoints: alwaysInSteps(subsetWarnings),
  nodes: always(node),
  services: alwaysInSteps(serviceWarnings),
  serviceaccounts: {
    warnings: account,
    updateWarnings: (object, old) => (isEnforced(old) ? [] : account(object)),
  },
  persistentvolumes: alwaysInSteps(volumeWarnings),
  persistentvolumeclaims: always(volumeClaimWarnings),
  'storageclasses.storage.k8s.io': alwaysInSteps(storageClassWarnings),
  'csistoragecapacities.storage.k8s.io': alwaysInSteps(storageCapacityWarnings),
  'runtimeclasses.node.k8s.io': alwaysInSteps(runtimeClass),
  'ingresses.networking.k8s.io': { warnings: ingressWarnings },
  'networkpolicies.networking.k8s.io': alwaysInSteps(networkPolicyWarnings),
  'endpointslices.discovery.k8s.io': {
    ...alwaysInSteps(endpointWarnings),
    warnings: (slice) => finish(newSlice(slice)),
    warningsSteps: newSlice,
  },
};

/** What the server says of objects of this kind that are valid and odd. */
export const warningsOf = (group: string, resource: string): Warns =>
  KINDS[group === '' ? resource : `${resource}.${group}`] ?? {};
