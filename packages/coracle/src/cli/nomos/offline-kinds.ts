/** The kinds that a source may be checked against without a server: those of Kubernetes, KubeVirt and this program. */

import { apiVersionOf, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { builtinResources } from '@coracle/apiserver/kinds/builtin/builtin-resources';
import { volumeSnapshotCrds } from '@coracle/cluster-rules/volume-snapshot/definitions';
import { configSyncCrds } from '@coracle/gitops/kinds/definitions';
import type { KindLookup } from '@coracle/gitops/plan/declare';
import { kubevirtResources, otherCrds } from '@coracle/kubevirt/kinds/kubevirt';

/** Looks them up. */
export function offlineKinds(): KindLookup {
  const kinds = new Map<string, ResourceType<KubeObject>>();
  const add = (type: ResourceType<KubeObject>): void => void kinds.set(`${apiVersionOf(type)}/${type.kind}`, type);
  for (const { group, version, resource, kind, namespaced } of [...builtinResources(), ...kubevirtResources()])
    add({ group, version, resource, kind, namespaced });
  for (const { spec } of [...configSyncCrds(0), ...otherCrds(0), ...volumeSnapshotCrds(0)])
    for (const { name } of spec.versions)
      add({
        group: spec.group,
        version: name,
        resource: spec.names.plural,
        kind: spec.names.kind,
        namespaced: spec.scope === 'Namespaced',
      });
  return (apiVersion, kind) => kinds.get(`${apiVersion}/${kind}`);
}
