/**
 * The common instance types and preferences: `spec.configuration.commonInstancetypesDeployment` of the KubeVirt object
 * puts them into the cluster, which is the default, or takes them out. Works beside everything else: nobody waits for it.
 */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, ObjectKey } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { isAlreadyExists, isConflict, isNotFound, orExpected } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { createController, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { KUBEVIRTS, type ReadonlyKubeVirt } from '../../kinds/kubevirt.ts';
import { commonInstancetypes } from '../../rules/instancetype/bundle/bundle.ts';
import { planBundle } from '../../rules/instancetype/bundle/plan-bundle.ts';
import { MATCHER_FIELDS, SOURCE_TYPES, type SourceKind } from '../../rules/instancetype/matcher.ts';
import { clusterConfigOf } from '../../rules/machine-defaults/cluster-config.ts';

/** Rights the controller needs, and no others. */
export const commonInstancetypesRules = policyRules(
  'get list watch : kubevirt.io : kubevirts',
  `get list watch create update delete : instancetype.kubevirt.io : virtualmachineclusterinstancetypes
    virtualmachineclusterpreferences`,
  'create patch : core : events',
);

const TYPES = MATCHER_FIELDS.map((field) => SOURCE_TYPES[field].cluster);
const typeOf = ({ kind }: DeepReadonly<SourceKind>): ResourceType<SourceKind> =>
  TYPES.find((type) => type.kind === kind)!;

/** Writes under way at a time: enough for the server to make one commit of many. */
const CONCURRENT_WRITES = 32;
/** All changes are one matter, so there is one key. */
const KEY: ObjectKey = { namespace: '', name: 'bundle' };

/** Makes the controller; nothing happens before `start`. */
export function createCommonInstancetypesController(options: ControllerEnvironment): Runnable {
  const { client, informers, clock, log } = options;
  const kubevirts = informers.of(KUBEVIRTS);
  const objects = TYPES.map((type) => informers.of(type));
  const events = createEventRecorder(client, { component: 'common-instancetypes', clock, log });
  let reported = '';
  let begun = false;

  return createController({
    ...options,
    name: 'common-instancetypes',
    sources: [
      source(kubevirts, () => [KEY]),
      // Our own writes come back as well; a pass that finds nothing to do costs little, but not as many times over.
      ...objects.map((informer) =>
        source(informer, (_object, previous) => (begun && previous === undefined ? [] : [KEY])),
      ),
    ],
    reconcile: async (_key, { signal }) => {
      begun = true;
      const kubevirt = kubevirts.list()[0];
      if (kubevirt === undefined || isDeleting(kubevirt)) return;
      const wanted = clusterConfigOf(kubevirt).commonInstancetypes ? commonInstancetypes() : [];
      const existing = objects.flatMap((informer) => informer.list());
      const plan = planBundle(existing, wanted);
      const writes = [
        ...plan.create.map((object) => () => client.create(typeOf(object), object)),
        ...plan.update.map((object) => () => client.update(typeOf(object), object)),
        ...plan.remove.map((object) => () => remove(client, object)),
      ];
      await inParallel(writes, signal);
      const foreign = plan.foreign.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort();
      report(kubevirt, foreign);
      if (writes.length > 0) {
        const { create, update, remove: removed } = plan;
        log.info('common instance types brought up to date', {
          created: create.length,
          updated: update.length,
          removed: removed.length,
          foreign: foreign.length,
        });
      }
    },
  });

  /** Once for each set of them: a user must learn that the object of that name is not ours. */
  function report(kubevirt: ReadonlyKubeVirt, foreign: readonly string[]): void {
    const text = foreign.join(', ');
    if (text === reported) return;
    reported = text;
    if (foreign.length === 0) return;
    const message = `not changed, because a user created or edited them: ${text}`;
    events.event(kubevirt, 'Warning', 'CommonInstancetypeEdited', message);
  }
}

const remove = async (client: Client, object: DeepReadonly<SourceKind>): Promise<void> => {
  const { name = '', uid = '', resourceVersion = '' } = object.metadata;
  // An edit made in between is the user's: then the object stays.
  await client.delete(typeOf(object), { namespace: '', name }, { preconditions: { uid, resourceVersion } });
};

/** Runs them all, some at a time. What was lost to somebody else (404, 409) is looked at again with the next change. */
async function inParallel(writes: readonly (() => Promise<unknown>)[], signal: AbortSignal): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < writes.length) {
      signal.throwIfAborted();
      await orExpected(writes[next++]!(), isNotFound, isConflict, isAlreadyExists);
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENT_WRITES, writes.length) }, work));
}
