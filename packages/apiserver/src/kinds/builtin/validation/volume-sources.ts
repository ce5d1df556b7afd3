/** What each kind of source asks for, of a volume of a Pod and of a PersistentVolume (core/validation). */

import { checkLabelName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { readQuantity } from '@coracle/apimachinery/quantity/quantity';
import {
  isObject,
  isTrueAt,
  type JsonObject,
  listAt,
  numberAt,
  textAt,
  textsAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import {
  faults,
  forbidden,
  invalid,
  required,
  requiredText,
  tooLong,
  unsupported,
} from '@coracle/apimachinery/validation/field-errors';
import { backstepErrors, descendingErrors } from './volume-paths.ts';

/** Validates a source that stands at `at`; `name` is that of its volume. */
type ValidateSource = (source: JsonObject, at: string, name: string) => FieldError[];
export type SourceRules = Readonly<Record<string, ValidateSource>>;

const needs =
  (...fields: string[]): ValidateSource =>
  (source, at) =>
    fields.flatMap((field) => (textAt(source, field) === '' ? [required(`${at}.${field}`)] : []));

/** A reference to a secret that has to say these of it. */
function secretErrors(source: JsonObject, at: string, fields: readonly string[]): FieldError[] {
  const secret = valueAt(source, 'secretRef');
  return isObject(secret) ? needs(...fields)(secret, `${at}.secretRef`, '') : [];
}

const emptyDir: ValidateSource = (source, at) => {
  const limit = readQuantity(valueAt(source, 'sizeLimit'));
  const isWrong = limit !== undefined && limit.nano < 0n;
  return isWrong ? [forbidden(`${at}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')] : [];
};

const HOST_PATH_TYPES = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];

const hostPath: ValidateSource = (source, at) => {
  const path = textAt(source, 'path');
  if (path === '') return [required(`${at}.path`)];
  const type = valueAt(source, 'type');
  const errors = backstepErrors(path, `${at}.path`);
  if (typeof type === 'string' && !HOST_PATH_TYPES.includes(type)) {
    errors.push(unsupported(`${at}.type`, type, HOST_PATH_TYPES));
  }
  return errors;
};

const local: ValidateSource = (source, at) => {
  const path = textAt(source, 'path');
  return path === '' ? [required(`${at}.path`)] : backstepErrors(path, `${at}.path`);
};

const gitRepo: ValidateSource = (source, at, name) => [
  ...needs('repository')(source, at, name),
  ...descendingErrors(textAt(source, 'directory'), `${at}.directory`),
];

/** Disks of clouds that have partitions. */
const partitioned =
  (id: string): ValidateSource =>
  (source, at, name) => {
    const partition = numberAt(source, 'partition');
    const errors = needs(id)(source, at, name);
    if (partition >= 0 && partition <= 255) return errors;
    return [...errors, invalid(`${at}.partition`, partition, 'must be between 1 and 255, inclusive')];
  };

const nfs: ValidateSource = (source, at, name) => {
  const path = textAt(source, 'path');
  const errors = needs('server', 'path')(source, at, name);
  return path.startsWith('/') ? errors : [...errors, invalid(`${at}.path`, path, 'must be an absolute path')];
};

const INITIATORS: readonly (readonly [prefix: string, shape: RegExp])[] = [
  ['iqn', /iqn\.\d{4}-\d{2}\.([A-Za-z0-9\-.]+)(:[^,;*&$|\s]+)$/],
  ['eui', /^eui.[A-Za-z0-9]{16}$/],
  ['naa', /^naa.[A-Za-z0-9]{32}$/],
];
const LONGEST_TARGET = 64;
const TARGET_RULE =
  'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.';

function initiatorErrors(name: string, at: string, start: string): FieldError[] {
  const shape = INITIATORS.find(([prefix]) => name.startsWith(prefix))?.[1];
  if (shape === undefined) return [invalid(at, name, start)];
  return shape.test(name) ? [] : [invalid(at, name, 'must be valid format')];
}

const lunErrors = (lun: number, at: string): FieldError[] =>
  lun < 0 || lun > 255 ? [invalid(`${at}.lun`, lun, 'must be between 0 and 255, inclusive')] : [];

const iscsi =
  (isPersistent: boolean): ValidateSource =>
  (source, at, name) => {
    const portal = textAt(source, 'targetPortal');
    const initiator = valueAt(source, 'initiatorName');
    const iqn = textAt(source, 'iqn');
    const start = isPersistent ? 'must be valid format' : 'must be valid format starting with iqn, eui, or naa';
    const errors = needs('targetPortal')(source, at, name);
    const isLong = typeof initiator === 'string' && `${name}:${portal}`.length > LONGEST_TARGET;
    if (isPersistent && isLong) errors.push(invalid(`${at}.targetportal`, portal, TARGET_RULE));
    errors.push(...(iqn === '' ? [required(`${at}.iqn`)] : initiatorErrors(iqn, `${at}.iqn`, start)));
    errors.push(...lunErrors(numberAt(source, 'lun'), at));
    const asksSecret = isTrueAt(source, 'chapAuthDiscovery') || isTrueAt(source, 'chapAuthSession');
    if (asksSecret && !isObject(valueAt(source, 'secretRef'))) errors.push(required(`${at}.secretRef`));
    if (isPersistent) errors.push(...secretErrors(source, at, ['name']));
    if (typeof initiator === 'string') errors.push(...initiatorErrors(initiator, `${at}.initiatorname`, start));
    // Of a Pod's volume it is reported at the volume.
    const whole = at.slice(0, at.lastIndexOf('.'));
    return !isPersistent && isLong ? [...errors, invalid(`${whole}.name`, name, TARGET_RULE)] : errors;
  };

const fc: ValidateSource = (source, at) => {
  const names = textsAt(source, 'targetWWNs');
  const ids = textsAt(source, 'wwids');
  const lun = valueAt(source, 'lun');
  const errors: FieldError[] = [];
  if (names.length === 0 && ids.length === 0) {
    errors.push(required(`${at}.targetWWNs`, 'must specify either targetWWNs or wwids, but not both'));
  }
  if (names.length === 0) return errors;
  if (ids.length > 0) {
    errors.push(invalid(`${at}.targetWWNs`, names, 'targetWWNs and wwids can not be specified simultaneously'));
  }
  if (typeof lun !== 'number') errors.push(required(`${at}.lun`, 'lun is required if targetWWNs is specified'));
  else errors.push(...lunErrors(lun, at));
  return errors;
};

const glusterfs: ValidateSource = needs('endpoints', 'path');

const persistentGlusterfs: ValidateSource = (source, at, name) => {
  const namespace = valueAt(source, 'endpointsNamespace');
  const errors = glusterfs(source, at, name);
  if (typeof namespace !== 'string') return errors;
  const details =
    namespace === ''
      ? ['if the endpointnamespace is set, it must be a valid namespace name']
      : checkLabelName(namespace);
  return [...errors, ...faults(`${at}.endpointsNamespace`, namespace, details)];
};

const flocker: ValidateSource = (source, at) => {
  const [name, id] = [textAt(source, 'datasetName'), textAt(source, 'datasetUUID')];
  const errors: FieldError[] = [];
  if (name === '' && id === '') errors.push(required(at, 'one of datasetName and datasetUUID is required'));
  if (name !== '' && id !== '') {
    errors.push(invalid(at, 'resource', 'datasetName and datasetUUID can not be specified simultaneously'));
  }
  if (name.includes('/')) errors.push(invalid(`${at}.datasetName`, name, "must not contain '/'"));
  return errors;
};

const LONGEST_TENANT = 64;
const REGISTRY_RULE = 'must be a host:port pair or multiple pairs separated by commas';
const HOST_AND_PORT = /^(\[[^\][]*\]|[^\][:]*):[^\][:]*$/;

const quobyte: ValidateSource = (source, at, name) => {
  const registry = textAt(source, 'registry');
  const errors: FieldError[] = [];
  if (registry === '') errors.push(required(`${at}.registry`, REGISTRY_RULE));
  else if (textAt(source, 'tenant').length > LONGEST_TENANT) {
    errors.push(required(`${at}.tenant`, 'must be a UUID and may not exceed a length of 64 characters'));
  } else if (!registry.split(',').every((pair) => HOST_AND_PORT.test(pair))) {
    errors.push(invalid(`${at}.registry`, registry, REGISTRY_RULE));
  }
  return [...errors, ...needs('volume')(source, at, name)];
};

const monitored =
  (...fields: string[]): ValidateSource =>
  (source, at, name) => [
    ...(listAt(source, 'monitors').length === 0 ? [required(`${at}.monitors`)] : []),
    ...needs(...fields)(source, at, name),
  ];

const cinder =
  (...secret: string[]): ValidateSource =>
  (source, at, name) => [...needs('volumeID')(source, at, name), ...secretErrors(source, at, secret)];

const RESERVED = /\.(kubernetes|k8s)\.io$/;

const flexVolume: ValidateSource = (source, at, name) => {
  const options = valueAt(source, 'options');
  const reserved = Object.keys(isObject(options) ? options : {}).filter((key) =>
    RESERVED.test(`.${key.split('/')[0]!.toLowerCase()}`),
  );
  const detail = 'kubernetes.io and k8s.io namespaces are reserved';
  return [
    ...needs('driver')(source, at, name),
    ...reserved.map((key) => invalid(`${at}.options[${key}]`, key, detail)),
  ];
};

const azureFile: ValidateSource = needs('secretName', 'shareName');

const persistentAzureFile: ValidateSource = (source, at, name) => {
  const errors = azureFile(source, at, name);
  return valueAt(source, 'secretNamespace') === '' ? [...errors, required(`${at}.secretNamespace`)] : errors;
};

const CACHING = ['None', 'ReadOnly', 'ReadWrite'];
const DISKS = ['Dedicated', 'Managed', 'Shared'];
const MANAGED = '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}';
const BLOB = 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd';

const azureDisk: ValidateSource = (source, at, name) => {
  const errors = needs('diskName', 'diskURI')(source, at, name);
  const place = textAt(source, 'diskURI');
  const [caching, kind] = [valueAt(source, 'cachingMode'), valueAt(source, 'kind')];
  if (typeof caching === 'string' && !CACHING.includes(caching)) {
    errors.push(unsupported(`${at}.cachingMode`, caching, CACHING));
  }
  if (typeof kind !== 'string') return errors;
  if (!DISKS.includes(kind)) errors.push(unsupported(`${at}.kind`, kind, DISKS));
  const [start, shape] = kind === 'Managed' ? ['/subscriptions/', MANAGED] : ['https://', BLOB];
  if (!place.startsWith(start)) errors.push(unsupported(`${at}.diskURI`, place, [shape]));
  return errors;
};

const storageos =
  (...secret: string[]): ValidateSource =>
  (source, at) => {
    const [volume, namespace] = [textAt(source, 'volumeName'), textAt(source, 'volumeNamespace')];
    return [
      ...requiredText(`${at}.volumeName`, volume, checkLabelName),
      ...(namespace === '' ? [] : faults(`${at}.volumeNamespace`, namespace, checkLabelName(namespace))),
      ...secretErrors(source, at, secret),
    ];
  };

const LONGEST_DRIVER = 63;

/** The name of a CSI driver (ValidateCSIDriverName). */
export function driverErrors(driver: string, at: string): FieldError[] {
  return [
    ...(driver === '' ? [required(at)] : []),
    ...(driver.length > LONGEST_DRIVER ? [tooLong(at, LONGEST_DRIVER)] : []),
    ...faults(at, driver, checkSubdomain(driver.toLowerCase())),
  ];
}

const csi: ValidateSource = (source, at) => {
  const errors = driverErrors(textAt(source, 'driver'), `${at}.driver`);
  const secret = valueAt(source, 'nodePublishSecretRef');
  if (!isObject(secret)) return errors;
  const name = textAt(secret, 'name');
  if (name === '') return [...errors, required(`${at}.nodePublishSecretRef.name`)];
  return [...errors, ...faults(`${at}.name`, name, checkSubdomain(name))];
};

const CSI_SECRETS = ['controllerPublish', 'controllerExpand', 'nodePublish', 'nodeExpand'];

const persistentCsi: ValidateSource = (source, at, name) => {
  const errors = driverErrors(textAt(source, 'driver'), `${at}.driver`);
  errors.push(...needs('volumeHandle')(source, at, name));
  for (const use of CSI_SECRETS) {
    const secret = valueAt(source, `${use}SecretRef`);
    const path = `${at}.${use}SecretRef`;
    if (!isObject(secret)) continue;
    errors.push(...needs('name', 'namespace')(secret, path, name));
    const [own, namespace] = [textAt(secret, 'name'), textAt(secret, 'namespace')];
    if (own !== '') errors.push(...faults(`${path}.name`, own, checkSubdomain(own)));
    if (namespace !== '') errors.push(...faults(`${path}.namespace`, namespace, checkLabelName(namespace)));
  }
  return errors;
};

const image: ValidateSource = (source, at) => {
  const policy = textAt(source, 'pullPolicy');
  const errors = textAt(source, 'reference') === '' ? [required(`${at}.reference`)] : [];
  if (policy !== '' && !PULL_POLICIES.includes(policy)) {
    errors.push(unsupported(`${at}.pullPolicy`, policy, PULL_POLICIES));
  }
  return errors;
};
const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];

const SHARED: SourceRules = {
  hostPath,
  gcePersistentDisk: partitioned('pdName'),
  awsElasticBlockStore: partitioned('volumeID'),
  nfs,
  flocker,
  rbd: monitored('image'),
  quobyte,
  cephfs: monitored(),
  fc,
  flexVolume,
  vsphereVolume: needs('volumePath'),
  photonPersistentDisk: needs('pdID'),
  portworxVolume: needs('volumeID'),
  azureDisk,
  scaleIO: needs('gateway', 'system', 'volumeName'),
};

/** Of volumes of Pods; those that hold lists (ConfigMaps, projections) are validated elsewhere. */
export const POD_SOURCE_RULES: SourceRules = {
  ...SHARED,
  emptyDir,
  gitRepo,
  iscsi: iscsi(false),
  glusterfs,
  persistentVolumeClaim: needs('claimName'),
  cinder: cinder('name'),
  azureFile,
  storageos: storageos('name'),
  csi,
  image,
};

/** Of PersistentVolumes. */
export const PERSISTENT_SOURCE_RULES: SourceRules = {
  ...SHARED,
  iscsi: iscsi(true),
  glusterfs: persistentGlusterfs,
  cinder: cinder('name', 'namespace'),
  azureFile: persistentAzureFile,
  storageos: storageos('name', 'namespace'),
  local,
  csi: persistentCsi,
};

/** Where upstream tells of a source, where that is not its own name. */
export const SOURCE_PATHS: Readonly<Record<string, string>> = { gcePersistentDisk: 'persistentDisk' };
/** Where upstream tells that there is one too many, where that is not its own name. */
export const SECOND_PATHS: Readonly<Record<string, string>> = { cephfs: 'cephFS', downwardAPI: 'downwarAPI' };
