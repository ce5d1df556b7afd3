/** Validation of the volumes of a Pod: each has one source, which is whole (core/validation, ValidateVolumes). */
import { checkLabelName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { Steps } from '@coracle/apimachinery/meta/steps';
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
  type Validation,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { validateClaimTemplate } from './claims.ts';
import { downwardErrors, fileErrors, keyErrors, modeErrors } from './volume-paths.ts';
import { POD_SOURCE_RULES, SECOND_PATHS, SOURCE_PATHS } from './volume-sources.ts';

/** In the order in which upstream looks for them. */
const SOURCES = [
  ...['emptyDir', 'hostPath', 'gitRepo', 'gcePersistentDisk', 'awsElasticBlockStore', 'secret', 'nfs', 'iscsi'],
  ...['glusterfs', 'flocker', 'persistentVolumeClaim', 'rbd', 'cinder', 'cephfs', 'quobyte', 'downwardAPI', 'fc'],
  ...['flexVolume', 'configMap', 'azureFile', 'vsphereVolume', 'photonPersistentDisk', 'portworxVolume', 'azureDisk'],
  ...['storageos', 'projected', 'scaleIO', 'csi', 'ephemeral', 'image'],
];
/** What a volume counts as. */
const VOLUME = 10;

/** Validates the volumes of a PodSpec; `podName` is that of the Pod, where there is one. */
export function* validateVolumes(
  checking: Validation,
  volumes: readonly JsonObject[],
  { at, podName }: { readonly at: string; readonly podName: string },
): Steps<void> {
  const names = new Set<string>();
  yield* validateNested(
    checking,
    volumes,
    function* (volume, i) {
      const path = `${at}[${i}]`;
      const name = textAt(volume, 'name');
      const { errors } = checking;
      yield* validateSource(checking, volume, { path, podName });
      errors.push(...requiredText(`${path}.name`, name, checkLabelName));
      if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
      names.add(name);
    },
    VOLUME,
  );
}

function* validateSource(
  checking: Validation,
  volume: JsonObject,
  { path, podName }: { readonly path: string; readonly podName: string },
): Steps<void> {
  const { errors } = checking;
  const [kind, ...more] = SOURCES.filter((one) => isObject(valueAt(volume, one)));
  if (kind === undefined) {
    errors.push(required(path, 'must specify a volume type'));
    return;
  }
  const source = valueAt(volume, kind) as JsonObject;
  const at = `${path}.${SOURCE_PATHS[kind] ?? kind}`;
  if (kind === 'secret' || kind === 'configMap') yield* validateKeys(checking, source, { at, kind });
  else if (kind === 'downwardAPI') {
    errors.push(...modeErrors(source, 'defaultMode', at));
    yield* validateEach(checking, objectsAt(source, 'items'), (file) => downwardErrors(file, at));
  } else if (kind === 'projected') yield* validateProjections(checking, source, at);
  else if (kind === 'ephemeral') {
    yield* validateClaimTemplate(checking, valueAt(source, 'volumeClaimTemplate'), `${at}.volumeClaimTemplate`);
    errors.push(...claimNameErrors(podName, textAt(volume, 'name'), path));
  } else errors.push(...(POD_SOURCE_RULES[kind]?.(source, at, textAt(volume, 'name')) ?? []));
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

function* validateKeys(
  checking: Validation,
  source: JsonObject,
  { at, kind }: { readonly at: string; readonly kind: 'secret' | 'configMap' },
): Steps<void> {
  const name = kind === 'secret' ? 'secretName' : 'name';
  if (textAt(source, name) === '') checking.errors.push(required(`${at}.${name}`));
  checking.errors.push(...modeErrors(source, 'defaultMode', at));
  yield* validateEach(checking, objectsAt(source, 'items'), (item, i) => keyErrors(item, `${at}.items[${i}]`));
}

const PROJECTIONS = ['secret', 'configMap', 'downwardAPI', 'serviceAccountToken'] as const;
const SHORTEST_TOKEN = 600;
const LONGEST_TOKEN = 2 ** 32;

function* validateProjections(checking: Validation, projected: JsonObject, at: string): Steps<void> {
  const { errors } = checking;
  errors.push(...modeErrors(projected, 'defaultMode', at));
  const paths = new Set<string>();
  const conflict = (path: string, shown: string): FieldError[] => {
    const isTaken = path !== '' && paths.has(path);
    paths.add(path);
    return isTaken ? [invalid(at, shown, 'conflicting duplicate paths')] : [];
  };
  yield* validateNested(
    checking,
    objectsAt(projected, 'sources'),
    function* (source, i) {
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
        yield* validateEach(checking, objectsAt(part, 'items'), (item, j) => {
          const file = textAt(item, 'path');
          const found = isKeyed ? keyErrors(item, `${place}.items[${j}]`) : downwardErrors(item, place);
          return [...found, ...conflict(file, isKeyed ? name : file)];
        });
      }
      if (kinds.length > 1) errors.push(forbidden(path, 'may not specify more than 1 volume type per source'));
    },
    VOLUME,
  );
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
