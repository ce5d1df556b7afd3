/** The kinds that a source may be checked against without a server: those of Kubernetes, KubeVirt and this program. */
import { builtinResources } from '../../../api/kinds/builtin/builtin-resources.ts';
import { configSyncCrds } from '../../../api/kinds/config-sync/definitions.ts';
import { kubevirtResources } from '../../../api/kinds/kubevirt/kubevirt.ts';
import { sspCrd } from '../../../api/kinds/ssp/definition.ts';
import { volumeSnapshotCrds } from '../../../api/kinds/volume-snapshot/definitions.ts';
import { apiVersionOf, type ResourceType } from '../../../api/meta/gvk.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { KindLookup } from '../../../gitops/plan/declare.ts';

/** Looks them up. */
export function offlineKinds(): KindLookup {
  const kinds = new Map<string, ResourceType<KubeObject>>();
  const add = (type: ResourceType<KubeObject>): void => void kinds.set(`${apiVersionOf(type)}/${type.kind}`, type);
  for (const { group, version, resource, kind, namespaced } of [...builtinResources(), ...kubevirtResources()])
    add({ group, version, resource, kind, namespaced });
  for (const { spec } of [...configSyncCrds(0), sspCrd(0), ...volumeSnapshotCrds(0)])
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
