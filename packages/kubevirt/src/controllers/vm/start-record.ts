/** The start revision of a machine in the API: taken before each start, read to tell what a restart would change. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { type DeepReadonly, keyOf } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import { CONTROLLER_REVISIONS } from '@coracle/apimachinery/types/resource-types';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import { orAbsent, orThere } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { ReadonlyVm, ReadonlyVmi, VirtualMachine } from '../../kinds/kubevirt.ts';
import type { Layers } from '../../rules/instancetype/expand.ts';
import type { MatcherField } from '../../rules/instancetype/matcher.ts';
import { layersOf, type Resolved, resolveRevision } from '../../rules/instancetype/resolve.ts';
import { withRevisionNames } from '../../rules/instancetype/revision-names.ts';
import type { ClusterConfig } from '../../rules/machine-defaults/cluster-config.ts';
import { DefaultsError } from '../../rules/machine-defaults/implicit-devices.ts';
import type { SourceLookup } from './source-lookup.ts';
import {
  differsFromStart,
  restartRequired,
  sameTemplateMetadata,
  startRevision,
  startRevisionPrefix,
  withGuestUuid,
} from './start-revision.ts';

/** A machine, its instance, and what its matchers stand for (undefined while that is not known). */
export interface Running {
  readonly vm: ReadonlyVm;
  readonly instance: ReadonlyVmi | undefined;
  readonly layers: Layers | undefined;
}

type Spec = DeepReadonly<VirtualMachine['spec']>;
type Revision = DeepReadonly<ControllerRevision>;

/** The start revisions of machines, written and compared. */
export function createStartRecord({
  client,
  lookup,
  config,
}: {
  readonly client: Client;
  readonly lookup: SourceLookup;
  readonly config: () => ClusterConfig;
}) {
  const startsOf = (vm: ReadonlyVm): readonly Revision[] =>
    lookup
      .ownRevisions(vm)
      .filter(({ metadata }) => metadata.name?.startsWith(startRevisionPrefix(vm)))
      .sort((a, b) => a.revision - b.revision);

  const remove = (revision: Revision): Promise<unknown> =>
    orAbsent(client.delete(CONTROLLER_REVISIONS, keyOf(revision)));
  const create = (revision: ControllerRevision): Promise<unknown> =>
    orThere(client.create(CONTROLLER_REVISIONS, revision));

  /** What the matchers of a start revision stand for, from the copies they name. */
  const layersThen = ({ metadata }: ReadonlyVm, spec: Spec): Layers | undefined => {
    const resolve = (field: MatcherField): Resolved => {
      const matcher = spec[field];
      if (matcher == null) return { type: 'none' };
      const revision = matcher.revisionName && lookup.cachedRevision(metadata.namespace ?? '', matcher.revisionName);
      return revision ? resolveRevision(field, revision) : { type: 'missing', message: '' };
    };
    const [instancetype, preference] = [resolve('instancetype'), resolve('preference')];
    if (instancetype.type === 'missing' || preference.type === 'missing') return undefined;
    return layersOf({ instancetype, preference });
  };

  const compare = (decide: typeof restartRequired, { vm, instance, layers }: Running): boolean => {
    if (!instance || hasEnded(instance)) return false;
    const started = startsOf(vm).at(-1)?.data?.['spec'] as Spec | undefined;
    if (started === undefined) return false;
    const known = vm.status?.conditions?.some(({ type }) => type === 'RestartRequired') ?? false;
    // What the machine stands for now is not known: what was known of it still holds.
    if (layers === undefined) return known;
    try {
      const guestUuid = instance.spec.domain?.firmware?.uuid;
      const before = {
        spec: withGuestUuid(started, guestUuid),
        // Two copies are decoded for it, and where the words are the same nobody asks.
        get layers() {
          return layersThen(vm, started);
        },
      };
      return decide(before, { spec: withGuestUuid(withRevisionNames(vm), guestUuid), layers }, config(), instance.spec);
    } catch (error) {
      if (error instanceof DefaultsError) return known;
      throw error;
    }
  };

  const differs = (running: Running): boolean => compare(differsFromStart, running);

  return {
    /** Whether the machine differs from what its instance was started from. */
    differs,
    /**
     * Generation of the machine that its instance stands for: the present one where the template is the same to the letter,
     * else that of the start; undefined when there is no record of it.
     */
    generation(running: Running): number | undefined {
      const { vm } = running;
      const started = startsOf(vm).at(-1);
      if (!started) return undefined;
      const template = (started.data?.['spec'] as Spec | undefined)?.template;
      const isSame = !differs(running) && sameTemplateMetadata(template?.metadata, vm.spec.template?.metadata);
      return isSame ? (vm.metadata.generation ?? 0) : started.revision;
    },
    /** Whether it differs in what only a restart can apply. */
    isRestartRequired: (running: Running): boolean => compare(restartRequired, running),

    /** Makes sure the machine has the revision of a start now, and no other. */
    async take(vm: ReadonlyVm): Promise<void> {
      const wanted = startRevision(vm);
      // Of this generation, but with other copies: one that was captured anew without a change of the machine.
      const isCurrent = ({ metadata, data }: Revision): boolean =>
        metadata.name === wanted.metadata.name && deepEqual(data, wanted.data);
      const starts = startsOf(vm);
      for (const revision of starts) if (!isCurrent(revision)) await remove(revision);
      if (!starts.some(isCurrent)) await create(wanted);
    },

    /** Where the instance runs just what `vm` says, has the revision say it in these words. */
    async keep(running: Running): Promise<void> {
      const current = startsOf(running.vm).at(-1);
      const { instance } = running;
      if (!instance || hasEnded(instance) || !current || differs(running)) return;
      const { metadata, ...wanted } = startRevision(running.vm);
      await remove(current);
      // Under the same name: the instance names it.
      const { name = '' } = current.metadata;
      await create({ ...wanted, metadata: { ...metadata, name }, revision: current.revision });
    },
  };
}
