/** What an export gives beside the bytes of its disks: its token, and manifests. */
import type { ObjectKey, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { SECRETS } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { ReadonlyVm, VirtualMachine } from '../../kinds/kubevirt.ts';
import { headerSecret, machineManifests } from '../../rules/export/export-manifests.ts';
import { EXPORT_TOKEN_KEY } from '../../rules/export/export-names.ts';
import type { ExportStores } from './export-stores.ts';
import type { ExportTarget } from './export-targets.ts';

export interface ExportContent {
  /** The token as the Secret has it now; undefined when there is none, or an empty one: nobody may download then. */
  token(key: ObjectKey, target: ExportTarget): Promise<string | undefined>;
  /** Undefined when the export has none. */
  manifests(
    key: ObjectKey,
    what: {
      readonly type: 'all' | 'auth-header-secret';
      readonly side: 'internal' | 'external';
      readonly token: string;
    },
  ): Promise<UnstructuredObject[] | undefined>;
}

/** Makes the reader, on the caches of the controller. */
export function createExportContent(client: Client, stores: ExportStores): ExportContent {
  return {
    async token({ namespace }, { secret }) {
      const found = await orAbsent(client.get(SECRETS, { namespace, name: secret }));
      const data = found?.data?.[EXPORT_TOKEN_KEY];
      return data ? decodeBase64(data) || undefined : undefined;
    },
    async manifests(key, { type, side, token }) {
      if (type === 'auth-header-secret') return [headerSecret(key.name, token)];
      const object = stores.exports.get(key);
      const name = object?.status?.virtualMachineName;
      const links = object?.status?.links?.[side];
      if (!object || !name || !links) return undefined;
      const { namespace } = key;
      const isSnapshot = object.spec.source.kind === 'VirtualMachineSnapshot';
      const { content, backups } = isSnapshot ? stores.savedVolumes(object) : { content: undefined, backups: [] };
      const saved = content?.spec.source.virtualMachine as ReadonlyVm | undefined;
      // As it was saved: the disks are of that moment.
      const vm = saved ?? stores.vms.get({ namespace, name });
      if (!vm) return undefined;
      const urls = new Map(
        links.volumes?.map((volume) => [volume.name, volume.formats?.find(({ format }) => format === 'gzip')?.url]),
      );
      return machineManifests({
        exportKey: key,
        cert: links.cert,
        vm: await expanded(client, vm),
        specOf: (claim) => {
          const saved = backups.find(({ persistentVolumeClaim: one }) => one.metadata?.name === claim);
          return (saved?.persistentVolumeClaim ?? stores.claims.get({ namespace, name: claim }))?.spec;
        },
        urlOf: (claim) => urls.get(claim),
      });
    },
  };
}

const decodeBase64 = (text: string): string =>
  new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));

/** With instance type and preference applied, by virt-api; as it is where that is not known. */
async function expanded(client: Client, vm: ReadonlyVm): Promise<ReadonlyVm> {
  if (vm.spec.instancetype == null && vm.spec.preference == null) return vm;
  const path = `/apis/subresources.kubevirt.io/v1/namespaces/${vm.metadata.namespace}/expand-vm-spec`;
  const body = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: vm.metadata, spec: vm.spec };
  try {
    return (await client.raw('PUT', path, { body })) as VirtualMachine;
  } catch (error) {
    if (error instanceof ApiError) return vm;
    throw error;
  }
}
