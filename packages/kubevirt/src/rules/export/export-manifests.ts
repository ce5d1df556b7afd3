/**
 * What an export gives beside the disks: the machine as it can be made anew elsewhere, its disks fetched from the export
 * (export.go, generateVMDefinitionFromVm and generateDataVolumesFromVm; exportserver.go, vmHandler).
 */
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly, ObjectKey, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyVm, VirtualMachine } from '../../kinds/kubevirt.ts';
import { authorityName, EXPORT_TOKEN_HEADER, headerSecretName } from './export-names.ts';

export interface ManifestFacts {
  readonly exportKey: ObjectKey;
  /** PEM of the authority of the server. */
  readonly cert: string;
  /** With instance type and preference applied. */
  readonly vm: ReadonlyVm;
  /** The claims of the machine as they are asked for, or as a snapshot saved them. */
  readonly specOf: (claim: string) => DeepReadonly<PersistentVolumeClaim['spec']>;
  /** Where the disk of a claim can be fetched, packed by gzip; undefined for one that is not offered. */
  readonly urlOf: (claim: string) => string | undefined;
}

/** ConfigMap with the authority, the machine, and a DataVolume for each disk that no template makes. */
export function machineManifests({ exportKey, cert, vm, specOf, urlOf }: ManifestFacts): UnstructuredObject[] {
  const certConfigMap = authorityName(exportKey.name);
  const http = (url: string) => ({
    http: { url, certConfigMap, secretExtraHeaders: [headerSecretName(exportKey.name)] },
  });
  const spec = cloneJson<VirtualMachine['spec']>(vm.spec);
  delete spec.instancetype;
  delete spec.preference;
  const names = (spec.template?.spec?.volumes ?? []).flatMap(
    ({ dataVolume, persistentVolumeClaim }) => dataVolume?.name ?? persistentVolumeClaim?.claimName ?? [],
  );
  const templates = new Set<string>();
  for (const template of spec.dataVolumeTemplates ?? []) {
    const name = template.metadata?.name ?? '';
    const url = urlOf(name);
    if (url === undefined || !names.includes(name)) continue;
    templates.add(name);
    const { sourceRef: _, ...rest } = template.spec as Record<string, unknown>;
    template.spec = { ...rest, source: http(url) } as typeof template.spec;
  }
  const { name = '', namespace = '', labels, annotations } = vm.metadata;
  const volumes = [...new Set(names)].flatMap((claim): UnstructuredObject[] => {
    const url = urlOf(claim);
    const saved = specOf(claim);
    if (templates.has(claim) || url === undefined || !saved) return [];
    const { volumeName: _n, storageClassName: _c, dataSource: _d, dataSourceRef: _r, ...pvc } = cloneJson(saved);
    return [
      {
        apiVersion: 'cdi.kubevirt.io/v1beta1',
        kind: 'DataVolume',
        metadata: { name: claim, namespace },
        spec: { source: http(url), pvc },
      } as unknown as UnstructuredObject,
    ];
  });
  return [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: certConfigMap },
      data: { 'ca.pem': cert.trim() },
    } as unknown as UnstructuredObject,
    {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name, namespace, ...(labels && { labels }), ...(annotations && { annotations }) },
      spec,
    } as unknown as UnstructuredObject,
    ...volumes,
  ];
}

/** The Secret that such DataVolumes name, with the token as the header that the server asks for. */
export const headerSecret = (exportName: string, token: string): UnstructuredObject =>
  ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: headerSecretName(exportName) },
    stringData: { token: `${EXPORT_TOKEN_HEADER}:${token}` },
  }) as unknown as UnstructuredObject;
