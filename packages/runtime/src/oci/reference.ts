/** Image references as people write them: `name`, `name:tag`, `host:port/name@sha256:...`. */

export interface ImageReference {
  /** Host and port of the registry; 'localhost' (no port) is our own store. */
  readonly registry: string;
  readonly repository: string;
  /** 'latest' when neither tag nor digest was given; '' when only a digest was given. */
  readonly tag: string;
  /** `sha256:...` or ''. */
  readonly digest: string;
}

const HOST = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,253}[A-Za-z0-9])?(:[0-9]{1,5})?$|^\[[0-9a-fA-F:]{2,45}\](:[0-9]{1,5})?$/;
const REPOSITORY = /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const MAX_LENGTH = 512;

/** True for `sha256:` and 64 lower-case hex digits: the only digests we trust. */
export const isDigest = (text: string): boolean => DIGEST.test(text);

/** Parses a reference by the rules of the distribution project (docker.io and library/ are implied). Throws on a bad one. */
export function parseReference(text: string): ImageReference {
  const bad = (why: string): Error =>
    new Error(`invalid image reference ${JSON.stringify(text.slice(0, 200))}: ${why}`);
  if (text.length === 0 || text.length > MAX_LENGTH) throw bad(`must have 1 to ${MAX_LENGTH} characters`);
  let rest = text;
  let digest = '';
  const at = rest.indexOf('@');
  if (at >= 0) {
    digest = rest.slice(at + 1);
    rest = rest.slice(0, at);
    if (!DIGEST.test(digest)) throw bad('the digest must be sha256:<64 hex digits>');
  }
  let tag = '';
  const colon = rest.lastIndexOf(':');
  if (colon > rest.lastIndexOf('/')) {
    tag = rest.slice(colon + 1);
    rest = rest.slice(0, colon);
    if (!TAG.test(tag)) throw bad('the tag holds characters that are not allowed');
  }
  const slash = rest.indexOf('/');
  const first = slash < 0 ? '' : rest.slice(0, slash);
  const named = first !== '' && (/[.:[]/.test(first) || first === 'localhost' || first !== first.toLowerCase());
  const registry = named ? first : 'docker.io';
  let repository = named ? rest.slice(slash + 1) : rest;
  if (!HOST.test(registry)) throw bad('the registry is not a host name');
  if (registry === 'docker.io' && !repository.includes('/')) repository = `library/${repository}`;
  if (!REPOSITORY.test(repository)) throw bad('the repository must be lower-case words joined by / . _ or -');
  return { registry, repository, tag: tag === '' && digest === '' ? 'latest' : tag, digest };
}

/** The reference in full: what the store keys its pulled images by. */
export const referenceText = (ref: ImageReference): string =>
  `${ref.registry}/${ref.repository}${ref.tag === '' ? '' : `:${ref.tag}`}${ref.digest === '' ? '' : `@${ref.digest}`}`;

/** True for images of our own store. */
export const isLocal = (ref: ImageReference): boolean => ref.registry === 'localhost';

/** The kubelet's default: Always for :latest, else IfNotPresent. */
export const defaultPullPolicy = (ref: ImageReference): 'Always' | 'IfNotPresent' =>
  ref.digest === '' && ref.tag === 'latest' ? 'Always' : 'IfNotPresent';
