/** Validation of the volumes of a Pod: each has one source, which is whole (core/validation, ValidateVolumes). */
import { checkLabelName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  isObject,
  type JsonObject,
  numberAt,
  objectsAt,
  textAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  forbidden,
  invalid,
  required,
  requiredText,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { validateClaimTemplate } from './claims.ts';
import { downwardErrors, fileErrors, keyErrors, modeErrors } from './volume-paths.ts';
import { SECOND_PATHS, SOURCE_PATHS, volumeSourceErrors } from './volume-sources.ts';

/** In the order in which upstream looks for them. */
const SOURCES = [
  ...['emptyDir', 'hostPath', 'gitRepo', 'gcePersistentDisk', 'awsElasticBlockStore', 'secret', 'nfs', 'iscsi'],
  ...['glusterfs', 'flocker', 'persistentVolumeClaim', 'rbd', 'cinder', 'cephfs', 'quobyte', 'downwardAPI', 'fc'],
  ...['flexVolume', 'configMap', 'azureFile', 'vsphereVolume', 'photonPersistentDisk', 'portworxVolume', 'azureDisk'],
  ...['storageos', 'projected', 'scaleIO', 'csi', 'ephemeral', 'image'],
];
/** Validates the volumes of a PodSpec; `podName` is that of the Pod, where there is one. */
export function validateVolumes(
  errors: FieldError[],
  volumes: readonly JsonObject[],
  { at, podName }: { readonly at: string; readonly podName: string },
): void {
  const names = new Set<string>();
  validateNested(errors, volumes, (volume, i) => {
    const path = `${at}[${i}]`;
    const name = textAt(volume, 'name');
    validateSource(errors, volume, { path, podName });
    errors.push(...requiredText(`${path}.name`, name, checkLabelName));
    if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
    names.add(name);
  });
}

function validateSource(
  errors: FieldError[],
  volume: JsonObject,
  { path, podName }: { readonly path: string; readonly podName: string },
): void {
  const [kind, ...more] = SOURCES.filter((one) => isObject(valueAt(volume, one)));
  if (kind === undefined) {
    errors.push(required(path, 'must specify a volume type'));
    return;
  }
  const source = valueAt(volume, kind) as JsonObject;
  const at = `${path}.${SOURCE_PATHS[kind] ?? kind}`;
  if (kind === 'secret' || kind === 'configMap') validateKeys(errors, source, { at, kind });
  else if (kind === 'downwardAPI') {
    errors.push(...modeErrors(source, 'defaultMode', at));
    validateEach(errors, objectsAt(source, 'items'), (file) => downwardErrors(file, at));
  } else if (kind === 'projected') validateProjections(errors, source, at);
  else if (kind === 'ephemeral') {
    validateClaimTemplate(errors, valueAt(source, 'volumeClaimTemplate'), `${at}.volumeClaimTemplate`);
    errors.push(...claimNameErrors(podName, textAt(volume, 'name'), path));
  } else errors.push(...volumeSourceErrors('pod', kind, { source, at, name: textAt(volume, 'name') }));
  for (const one of more) {
    errors.push(forbidden(`${path}.${SECOND_PATHS[one] ?? one}`, 'may not specify more than 1 volume type'));
  }
}

/** The claim of an ephemeral volume is called after the Pod and the volume. */
function claimNameErrors(podName: string, name: string, path: string): FieldError[] {
  if (podName === '' || name === '') return [];
  const claim = `${podName}-${name}`;
  return checkSubdomain(claim).map((detail) =>
    invalid(`${path}.name`, name, `PVC name ${JSON.stringify(claim)}: ${detail}`),
  );
}

function validateKeys(
  errors: FieldError[],
  source: JsonObject,
  { at, kind }: { readonly at: string; readonly kind: 'secret' | 'configMap' },
): void {
  const name = kind === 'secret' ? 'secretName' : 'name';
  if (textAt(source, name) === '') errors.push(required(`${at}.${name}`));
  errors.push(...modeErrors(source, 'defaultMode', at));
  validateEach(errors, objectsAt(source, 'items'), (item, i) => keyErrors(item, `${at}.items[${i}]`));
}

const PROJECTIONS = ['secret', 'configMap', 'downwardAPI', 'serviceAccountToken'] as const;
const SHORTEST_TOKEN = 600;
const LONGEST_TOKEN = 2 ** 32;

function validateProjections(errors: FieldError[], projected: JsonObject, at: string): void {
  errors.push(...modeErrors(projected, 'defaultMode', at));
  const paths = new Set<string>();
  const conflict = (path: string, shown: string): FieldError[] => {
    const isTaken = path !== '' && paths.has(path);
    paths.add(path);
    return isTaken ? [invalid(at, shown, 'conflicting duplicate paths')] : [];
  };
  validateNested(errors, objectsAt(projected, 'sources'), (source, i) => {
    const path = `${at}.sources[${i}]`;
    const kinds = PROJECTIONS.filter((kind) => isObject(valueAt(source, kind)));
    for (const kind of kinds) {
      const part = valueAt(source, kind) as JsonObject;
      const place = `${path}.${kind}`;
      if (kind === 'serviceAccountToken') {
        errors.push(...tokenErrors(part, { at, place }));
        continue;
      }
      const name = textAt(part, 'name');
      const isKeyed = kind !== 'downwardAPI';
      if (isKeyed && name === '') errors.push(required(`${place}.name`));
      validateEach(errors, objectsAt(part, 'items'), (item, j) => {
        const file = textAt(item, 'path');
        const found = isKeyed ? keyErrors(item, `${place}.items[${j}]`) : downwardErrors(item, place);
        return [...found, ...conflict(file, isKeyed ? name : file)];
      });
    }
    if (kinds.length > 1) errors.push(forbidden(path, 'may not specify more than 1 volume type per source'));
  });
}

/** Upstream tells of the path at the volume. */
function tokenErrors(token: JsonObject, { at, place }: { readonly at: string; readonly place: string }): FieldError[] {
  const seconds = numberAt(token, 'expirationSeconds');
  const path = textAt(token, 'path');
  const refuse = (detail: string): FieldError => invalid(`${place}.expirationSeconds`, seconds, detail);
  const errors: FieldError[] = [];
  if (seconds < SHORTEST_TOKEN) errors.push(refuse('may not specify a duration less than 10 minutes'));
  if (seconds > LONGEST_TOKEN) errors.push(refuse('may not specify a duration larger than 2^32 seconds'));
  errors.push(...(path === '' ? [required(`${at}.path`)] : fileErrors(path, `${at}.path`)));
  return errors;
}
