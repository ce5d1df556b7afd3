/** The patches by which start, stop and restart reach the controllers: pure, so that tables can test them. */

import { internalError } from '@coracle/apimachinery/meta/status';
import type { JsonPatchOperation } from '@coracle/client/client';
import type { ReadonlyVm, StateChangeRequest } from '../../../kinds/kubevirt.ts';

/**
 * Puts requests into the status. A `test` on the requests that were read makes two callers at once collide; a lone
 * Stop replaces what is there. Throws ApiError 500 when another request is under way.
 */
export function changeRequestPatch(
  { status }: ReadonlyVm,
  requests: readonly StateChangeRequest[],
): JsonPatchOperation[] {
  if (status === undefined || Object.keys(status).length === 0)
    return [{ op: 'add', path: '/status', value: { stateChangeRequests: requests } }];
  const present = status.stateChangeRequests ?? [];
  const replaces = requests.length === 1 && requests[0]!.action === 'Stop';
  if (present.length > 0 && !replaces) throw internalError('unable to complete request: stop/start already underway');
  const path = '/status/stateChangeRequests';
  return [
    // An absent list is tested against null, as the API server's JSON patch understands it.
    { op: 'test', path, value: status.stateChangeRequests ?? null },
    { op: present.length > 0 ? 'replace' : 'add', path, value: requests },
    ...(status.startFailure ? [{ op: 'remove', path: '/status/startFailure' } as const] : []),
  ];
}

/** Switches the virtual machine on or off in its spec, in whichever of the two fields it uses. */
export function runningPatch({ spec }: ReadonlyVm, running: boolean): JsonPatchOperation[] {
  const [member, value] =
    spec.running === undefined || spec.running === null
      ? (['runStrategy', running ? 'Always' : 'Halted'] as const)
      : (['running', running] as const);
  return setPatch(`/spec/${member}`, spec[member], value);
}

/** Changes how long the guest may take to shut down. */
export const gracePeriodPatch = (current: number | undefined, wanted: number): JsonPatchOperation[] =>
  setPatch('/spec/terminationGracePeriodSeconds', current, wanted);

const setPatch = (path: string, current: unknown, value: unknown): JsonPatchOperation[] =>
  current === undefined
    ? [{ op: 'add', path, value }]
    : [
        { op: 'test', path, value: current },
        { op: 'replace', path, value },
      ];
