/**
 * What is refused of the spec of a DataVolume, alone or in a machine: what CDI refuses, and what nothing here does, so that
 * no DataVolume waits for what never comes.
 */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isQuantity, quantityToBytes } from '@coracle/apimachinery/quantity/quantity';
import { parseChecksum } from '@coracle/cluster-rules/storage/checksum';
import type { DataVolumeSpec } from '../../kinds/kinds.ts';
import { sourceOfDataVolume } from './data-volume-source.ts';

type Spec = DeepReadonly<DataVolumeSpec>;
type Finding = FieldError & { readonly detail: string };

export interface DataVolumeFindings {
  readonly causes: readonly Finding[];
  readonly warnings: readonly string[];
}

const HEADER = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[ \t]*[\t\x20-\x7e]*$/;
const SERVED = 'http, registry, upload, pvc, snapshot and blank are';

/** The first finding of each part. `architecture`: that of the guests, as Go names it. */
export function validateDataVolume(path: string, spec: Spec, architecture: string): DataVolumeFindings {
  const causes = [...sourceCauses(path, spec), ...claimCauses(path, spec), ...unserved(path, spec)];
  const { http, registry } = spec.source ?? {};
  if (http) causes.push(...httpCauses(`${path}.source.http`, http));
  if (registry) causes.push(...registryCauses(`${path}.source.registry`, registry, architecture));
  return {
    causes,
    warnings: [
      ...(spec.preallocation
        ? [`${path}.preallocation has no effect here: disks take space of the pool as they are written`]
        : []),
      ...(spec.priorityClassName ? [`${path}.priorityClassName has no effect here: no Pods fill disks`] : []),
    ],
  };
}

const invalid = (field: string, detail: string): Finding => ({ type: 'FieldValueInvalid', field, detail });
const count = (value: object | undefined): number =>
  Object.values(value ?? {}).filter((member) => member !== undefined && member !== null).length;

function sourceCauses(path: string, { source, sourceRef, pvc, storage }: Spec): Finding[] {
  const claim = pvc ?? storage;
  const fillsItself = !!(claim?.dataSource ?? claim?.dataSourceRef);
  if (fillsItself && (source || sourceRef))
    return [invalid(path, 'External population is incompatible with Source and SourceRef')];
  if (fillsItself) return [];
  if (!source && !sourceRef)
    return [invalid(path, 'Data volume should have either Source, SourceRef, or be externally populated')];
  if (source && sourceRef) return [invalid(path, 'Data volume should have either Source or SourceRef, not both')];
  if (sourceRef && sourceRef.kind !== 'DataSource')
    return [
      invalid(
        `${path}.sourceRef.kind`,
        `Unsupported sourceRef kind ${sourceRef.kind}, currently only DataSource is supported`,
      ),
    ];
  if (sourceRef && !sourceRef.name) return [invalid(`${path}.sourceRef.name`, 'Missing sourceRef name')];
  if (!source) return [];
  if (count(source) === 0) return [invalid(`${path}.source`, 'Missing Data volume source')];
  if (count(source) > 1) return [invalid(`${path}.source`, 'Multiple Data volume sources')];
  const named = source.pvc ?? source.snapshot;
  if (named && !named.name) return [invalid(`${path}.source`, 'the source has no name')];
  return [];
}

function claimCauses(path: string, spec: Spec): Finding[] {
  const { pvc, storage } = spec;
  if (!pvc && !storage) return [invalid(path, 'Missing Data volume PVC')];
  if (pvc && storage)
    return [invalid(path, 'Duplicate storage definition, both target storage and target pvc defined')];
  const field = `${path}.${pvc ? 'pvc' : 'storage'}`;
  const amount = (pvc ?? storage)?.resources?.requests?.['storage'];
  const source = sourceOfDataVolume(spec, '');
  const isClone = source?.type === 'pvc' || source?.type === 'snapshot' || source?.type === 'dataSource';
  if (amount === undefined)
    return isClone && storage
      ? []
      : [invalid(`${field}.resources.requests`, `${pvc ? 'PVC' : 'Storage'} size is missing`)];
  const text = String(amount);
  if (!isQuantity(text) || quantityToBytes(text) <= 0)
    return [invalid(`${field}.resources.requests`, "PVC size can't be equal or less than zero")];
  const modes = pvc?.accessModes ?? [];
  if (pvc && modes.length === 0) return [invalid(`${field}.accessModes`, 'PVC accessModes is missing')];
  if (modes.length > 1) return [invalid(`${field}.accessModes`, 'PVC multiple accessModes')];
  return [];
}

function unserved(path: string, spec: Spec): Finding[] {
  const found: Finding[] = [];
  const source = sourceOfDataVolume(spec, '');
  if (source?.type === 'unserved')
    found.push(
      invalid(`${path}.source.${source.name}`, `source ${source.name} is not served by this server; ${SERVED}`),
    );
  const { contentType = '' } = spec;
  if (contentType === 'archive')
    found.push(
      invalid(
        `${path}.contentType`,
        'contentType archive is not served by this server: a claim here holds one disk image',
      ),
    );
  else if (contentType !== '' && contentType !== 'kubevirt')
    found.push(invalid(`${path}.contentType`, `ContentType not one of: kubevirt, archive`));
  if (spec.checkpoints?.length || spec.finalCheckpoint)
    found.push(
      invalid(
        `${path}.${spec.checkpoints?.length ? 'checkpoints' : 'finalCheckpoint'}`,
        'imports in several stages (checkpoints) are not served by this server',
      ),
    );
  if (source) found.push(...givenVolume(path, spec));
  return found;
}

/** What would have the claim be of a volume that is there: it gets one that is made for its content. */
function givenVolume(path: string, { pvc, storage }: Spec): Finding[] {
  const field = `${path}.${pvc ? 'pvc' : 'storage'}`;
  const claim = pvc ?? storage ?? {};
  const why = 'is not served by this server: the volume is made for the claim';
  return [
    ...(claim.selector ? [invalid(`${field}.selector`, `a selector of volumes ${why}`)] : []),
    ...(claim.volumeName ? [invalid(`${field}.volumeName`, `a volume that is named ${why}`)] : []),
    ...(pvc?.volumeAttributesClassName
      ? [invalid(`${field}.volumeAttributesClassName`, 'volumes of local.coracle.dev have no VolumeAttributesClasses')]
      : []),
  ];
}

function httpCauses(path: string, http: NonNullable<NonNullable<Spec['source']>['http']>): Finding[] {
  const url = URL.parse(http.url);
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    return [invalid(`${path}.url`, `Invalid source URL: ${http.url.slice(0, 200)} is not a URL of http or https`)];
  if (url.username !== '' || url.password !== '')
    return [invalid(`${path}.url`, 'credentials do not belong into a URL: secretRef names a Secret with them')];
  if (http.checksum && !parseChecksum(http.checksum))
    return [
      invalid(
        `${path}.checksum`,
        `Invalid checksum: ${http.checksum.slice(0, 150)} is not ALGORITHM:HEX, with md5, sha1, sha256 or sha512`,
      ),
    ];
  const header = (http.extraHeaders ?? []).find((line) => !HEADER.test(line.trim()));
  return header === undefined ? [] : [invalid(`${path}.extraHeaders`, 'an extra header is not NAME: VALUE')];
}

function registryCauses(
  path: string,
  registry: NonNullable<NonNullable<Spec['source']>['registry']>,
  architecture: string,
): Finding[] {
  const { url, imageStream, pullMethod = '', certConfigMap, platform } = registry;
  if (url && imageStream) return [invalid(path, 'Source registry should have either URL or ImageStream')];
  if (imageStream)
    return [invalid(`${path}.imageStream`, 'image streams are of OpenShift, and none is served here; use a url')];
  if (!url) return [invalid(path, 'Source registry should have either URL or ImageStream')];
  if (!url.startsWith('docker://') || url.length === 'docker://'.length)
    return [invalid(`${path}.url`, `Invalid source URL: ${url.slice(0, 200)} is not docker://IMAGE`)];
  if (!['', 'pod', 'node'].includes(pullMethod))
    return [invalid(`${path}.pullMethod`, `ImportMethod ${pullMethod} is neither 'pod', 'node' or ''`)];
  if (certConfigMap)
    return [
      invalid(
        `${path}.certConfigMap`,
        'certificates of registries are not served by this server: the host trusts its own',
      ),
    ];
  if (platform?.architecture && platform.architecture !== architecture)
    return [
      invalid(
        `${path}.platform.architecture`,
        `images are pulled for ${architecture}, the architecture of guests here, and ${platform.architecture} was requested`,
      ),
    ];
  return [];
}

/** True for a URL that names the very host that fetches it. */
export function isLoopbackUrl(text: string): boolean {
  const host = URL.parse(text)?.hostname.replace(/^\[|\]$/g, '') ?? '';
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host) || /^::ffff:7f/.test(host);
}
