/** Names and paths of an export, as upstream's (kubevirt pkg/storage/export/export). */
import type { ObjectKey, ReadonlyObject } from '@coracle/apimachinery/meta/object';

const LABEL_MAX = 63;
const DIGEST_LENGTH = 8;
const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
const encoder = new TextEncoder();

function fnv32a(text: string): string {
  let hash = FNV_OFFSET;
  for (const byte of encoder.encode(text)) hash = Math.imul(hash ^ byte, FNV_PRIME) >>> 0;
  return hash.toString(16).padStart(DIGEST_LENGTH, '0');
}

/** `base-suffix` as a label of DNS: what would be too long is cut, with a digest of it (library-go, naming.GetName). */
function shortName(base: string, suffix: string): string {
  const name = `${base}-${suffix}`;
  if (name.length <= LABEL_MAX) return name;
  const room = LABEL_MAX - DIGEST_LENGTH - 2 - suffix.length;
  return room < 0
    ? `${base.slice(0, LABEL_MAX - DIGEST_LENGTH - 1)}-${fnv32a(name)}`
    : `${base.slice(0, room)}-${fnv32a(base)}-${suffix}`;
}

const nameOf = ({ metadata }: Pick<ReadonlyObject, 'metadata'>): string => metadata.name ?? '';

export const exportServiceName = (object: Pick<ReadonlyObject, 'metadata'>): string =>
  shortName('virt-export', nameOf(object));
/** How the export is called inside the cluster: its Service. */
export const exportHost = (object: Pick<ReadonlyObject, 'metadata'>): string =>
  `${exportServiceName(object)}.${object.metadata.namespace ?? ''}.svc`;
/** The Secret that is made where the export names none. */
export const exportTokenName = (object: ReadonlyObject): string => shortName('export-token', nameOf(object));
/** The Secret of the manifests, with the token as a header. */
export const headerSecretName = (exportName: string): string => `header-secret-${exportName}`;
/** The ConfigMap of the manifests, with the authority of the server. */
export const authorityName = (exportName: string): string => `export-ca-cm-${exportName}`;

export const EXPORT_SERVICE_LABEL = 'kubevirt.io.virt-export-service';
export const EXPORT_TOKEN_HEADER = 'x-kubevirt-export-token';
/** Key of the Secret. */
export const EXPORT_TOKEN_KEY = 'token';

/** Where an export lies on the proxy (links.go, externalUrlLinkFormat). */
export const exportPath = ({ namespace, name }: ObjectKey): string =>
  `/api/export.kubevirt.io/v1/namespaces/${namespace}/virtualmachineexports/${name}`;

const INTERNAL =
  /^https:\/\/virt-export-[a-z0-9.-]+\.svc(?:\.cluster\.local)?(?::443)?(?=\/api\/export\.kubevirt\.io\/)/;
/** An internal link as nodes follow it, which do not reach Services; other links stay. `server`: where exports are served. */
export const linkForNodes = (url: string, server: string): string => url.replace(INTERNAL, server);

/** File of a volume at `/volumes/CLAIM/` for each format. */
export const FORMAT_FILES = { raw: 'disk.img', gzip: 'disk.img.gz', 'tar.gz': 'disk.tar.gz', dir: 'dir/' } as const;
export const MANIFEST_PATHS = { all: 'manifests/all', 'auth-header-secret': 'manifests/secret' } as const;
