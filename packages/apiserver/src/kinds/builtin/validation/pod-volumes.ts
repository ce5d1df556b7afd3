/**
 * Validation of the volumes of a Pod: each has one source, which names what it leads to (core/validation, ValidateVolumes).
 * The files that a kubelet makes of a source are not looked at.
 */
import { checkLabelName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, type JsonObject, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  forbidden,
  required,
  requiredText,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { SECOND_PATHS, SOURCE_PATHS, volumeSourceErrors } from './volume-sources.ts';

/** In the order in which upstream looks for them. */
const SOURCES = [
  ...['emptyDir', 'hostPath', 'gitRepo', 'gcePersistentDisk', 'awsElasticBlockStore', 'secret', 'nfs', 'iscsi'],
  ...['glusterfs', 'flocker', 'persistentVolumeClaim', 'rbd', 'cinder', 'cephfs', 'quobyte', 'downwardAPI', 'fc'],
  ...['flexVolume', 'configMap', 'azureFile', 'vsphereVolume', 'photonPersistentDisk', 'portworxVolume', 'azureDisk'],
  ...['storageos', 'projected', 'scaleIO', 'csi', 'ephemeral', 'image'],
];

/** Validates `spec.volumes`. */
export function validateVolumes(errors: FieldError[], volumes: readonly JsonObject[]): void {
  const names = new Set<string>();
  validateNested(errors, volumes, (volume, i) => {
    const path = `spec.volumes[${i}]`;
    const name = textAt(volume, 'name');
    errors.push(...sourceErrors(volume, path), ...requiredText(`${path}.name`, name, checkLabelName));
    if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
    names.add(name);
  });
}

function sourceErrors(volume: JsonObject, path: string): FieldError[] {
  const [kind, ...more] = SOURCES.filter((one) => isObject(valueAt(volume, one)));
  if (kind === undefined) return [required(path, 'must specify a volume type')];
  const source = valueAt(volume, kind) as JsonObject;
  const at = `${path}.${SOURCE_PATHS[kind] ?? kind}`;
  return [
    ...volumeSourceErrors('pod', kind, { source, at, name: textAt(volume, 'name') }),
    ...more.map((one) => forbidden(`${path}.${SECOND_PATHS[one] ?? one}`, 'may not specify more than 1 volume type')),
  ];
}
