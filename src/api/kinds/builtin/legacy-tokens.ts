/**
 * Tokens without an end, which Secrets of service accounts hold: how it is written down that one is used, or was found
 * to be unused. The server writes the first, a controller the second.
 */

/** Label of the Secret: the day of the last use. */
export const LAST_USED = 'kubernetes.io/legacy-token-last-used';
/** Label of the Secret: the day since which the token is refused. */
export const INVALID_SINCE = 'kubernetes.io/legacy-token-invalid-since';

/** ConfigMap of kube-system that tells, under `since`, from which day on uses are noted. */
export const TOKEN_TRACKING = 'kube-apiserver-legacy-service-account-token-tracking';

/** The day in UTC, as all of these have it: `YYYY-MM-DD`. */
export const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);
