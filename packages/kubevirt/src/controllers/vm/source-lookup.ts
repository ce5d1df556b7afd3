/** Instance types, preferences and their captured copies as the controller finds them: in its informers, then the API. */

import { isControlledBy } from '@coracle/apimachinery/meta/controller-reference';
import { type DeepReadonly, keyOf } from '@coracle/apimachinery/meta/object';
import { isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import { CONTROLLER_REVISIONS } from '@coracle/apimachinery/types/resource-types';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { controllerOwner, type Source, source } from '@coracle/client/controller/controller';
import type { Informer } from '@coracle/client/informer/informer';
import type { InformerSet } from '@coracle/client/informer/informer-set';
import type { ReadonlyVm, VirtualMachine } from '../../kinds/kubevirt.ts';
import { MATCHER_FIELDS, SOURCE_TYPES, sourceType } from '../../rules/instancetype/matcher.ts';
import type { SourceReader } from '../../rules/instancetype/resolve.ts';
import { REVISION_LABELS } from '../../rules/instancetype/revision.ts';

const OWNER = 'controller uid';
const MATCHERS = 'matchers';
const PINS = 'pins';

type Revision = DeepReadonly<ControllerRevision>;

export interface SourceLookup {
  readonly reader: SourceReader;
  /** A cached revision, without asking the API. */
  cachedRevision(namespace: string, name: string): Revision | undefined;
  /** Cached revisions that the machine controls: copies and start revisions. */
  ownRevisions(vm: ReadonlyVm): readonly Revision[];
  /** What has a machine looked at again: its copies and pins, and objects it names while it has no copy of them. */
  readonly sources: readonly Source[];
}

/** Asks for the informers; nothing is read before they are started. */
export function createSourceLookup(
  { client, informers }: { readonly client: Client; readonly informers: InformerSet },
  vms: Informer<VirtualMachine>,
): SourceLookup {
  const revisions = informers.of(CONTROLLER_REVISIONS);
  revisions.addIndex(OWNER, ({ metadata }) =>
    (metadata.ownerReferences ?? []).flatMap((owner) => (owner.controller === true ? [owner.uid] : [])),
  );
  vms.addIndex(MATCHERS, matchersOf);
  vms.addIndex(PINS, pinsOf);
  const types = MATCHER_FIELDS.flatMap((field) => Object.values(SOURCE_TYPES[field]));
  const objects = new Map(types.map((type) => [type.kind, informers.of(type)]));

  const ownRevisions = ({ metadata }: ReadonlyVm): readonly Revision[] =>
    revisions.byIndex(OWNER, metadata.uid ?? '').filter((one) => one.metadata.namespace === metadata.namespace);
  const isCopy = ({ metadata }: Revision): boolean => metadata.labels?.[REVISION_LABELS.name] !== undefined;
  const byOwner = controllerOwner(revisions, { group: 'kubevirt.io', kind: 'VirtualMachine' });

  return {
    ownRevisions,
    cachedRevision: (namespace, name) => revisions.get({ namespace, name }),
    // An informer lags behind: what it does not know may have been made a moment ago.
    reader: {
      revision: async (namespace, name) =>
        revisions.get({ namespace, name }) ?? orAbsent(client.get(CONTROLLER_REVISIONS, { namespace, name })),
      object: async ({ type, namespace, name }) =>
        objects.get(type.kind)?.get({ namespace, name }) ?? orAbsent(client.get(type, { namespace, name })),
      own: async (vm) => {
        const cached = ownRevisions(vm).filter(isCopy);
        if (cached.length > 0) return cached;
        const { namespace = '', uid } = vm.metadata;
        const { items } = await client.list(CONTROLLER_REVISIONS, { namespace, labelSelector: REVISION_LABELS.uid });
        return items.filter((revision) => isControlledBy(revision, uid));
      },
    },
    sources: [
      {
        informer: byOwner.informer,
        keys: (object, previous) => (isCopy(object as Revision) ? byOwner.keys(object, previous) : []),
      },
      // A pin may be owned by another machine or by nobody.
      source(revisions, ({ metadata }) =>
        vms.byIndex(PINS, pinKey(metadata.namespace, metadata.name)).map((vm) => keyOf(vm)),
      ),
      ...[...objects.values()].map((informer) =>
        source(informer, ({ kind, metadata }) =>
          vms.byIndex(MATCHERS, matcherKey(kind, metadata.namespace, metadata.name)).map((vm) => keyOf(vm)),
        ),
      ),
    ],
  };
}

const matcherKey = (kind: string, namespace = '', name = ''): string => `${kind}/${namespace}/${name}`;

const pinKey = (namespace = '', name = ''): string => `${namespace}/${name}`;

/** The revisions that a machine names itself. */
const pinsOf = ({ metadata, spec }: ReadonlyVm): string[] =>
  MATCHER_FIELDS.map((field) => spec?.[field]?.revisionName)
    .filter((name) => !!name)
    .map((name) => pinKey(metadata.namespace, name));

/** What a machine names and has no copy of. */
function matchersOf(vm: ReadonlyVm): string[] {
  const keys: string[] = [];
  for (const field of MATCHER_FIELDS) {
    const matcher = vm.spec?.[field];
    const type = matcher == null ? undefined : sourceType(field, matcher.kind);
    if (matcher == null || type === undefined) continue;
    if (vm.status?.[`${field}Ref`]?.controllerRevisionRef?.name && !isConditionTrue(vm, 'Failure')) continue;
    keys.push(matcherKey(type.kind, type.namespaced ? vm.metadata.namespace : '', matcher.name));
  }
  return keys;
}
