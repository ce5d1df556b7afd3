/**
 * The claims whose content a node holds in files of its own, as they stand on its Node: the agent lists them, the
 * control plane names those that are gone, and the agent removes their files. Agents may not read the claims of others,
 * and what is written down survives whoever was away when a claim was deleted.
 */

/** On a Node, by its agent: `UID` or `UID/STORAGECLASS`, separated by commas. */
export const HELD_CLAIMS_ANNOTATION = 'coracle.dev/claims';
/** On a Node, by the claim controller: UIDs of those whose files are to go. */
export const GONE_CLAIMS_ANNOTATION = 'coracle.dev/gone-claims';

/** A claim that a node holds. */
export interface HeldClaim {
  readonly uid: string;
  /** The class whose reclaim policy says what becomes of it; '' for none, which is Delete. */
  readonly storageClass: string;
}

/** Claims that one Node lists; annotations have a limit of 256 KiB. The others follow as these go. */
export const MAX_LISTED = 1500;

const UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The annotation's text, in one order whatever the order of `claims`. */
export const formatHeldClaims = (claims: readonly HeldClaim[]): string =>
  claims
    .map(({ uid, storageClass }) => (storageClass === '' ? uid : `${uid}/${storageClass}`))
    .sort()
    .slice(0, MAX_LISTED)
    .join(',');

/** Reads either annotation; entries that are none are left out. */
export function parseHeldClaims(text: string | undefined): HeldClaim[] {
  return (text ?? '').split(',').flatMap((entry) => {
    const [uid = '', storageClass = ''] = entry.split('/');
    return UID.test(uid) ? [{ uid, storageClass }] : [];
  });
}
