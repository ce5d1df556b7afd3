/** What nodes of this process prove their names to other nodes with: a certificate of a day, replaced while it is good. */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { KeyPairPem, Pki } from '../config/pki.ts';

/** As those that a node of another host is given (`kube-controllers/certificates`). */
const DAYS = 1;
/** By the wall clock and in short steps: a host may sleep, and a timer has a longest time. */
const LOOK_MS = 5 * 60_000;

export interface NodePairOptions {
  readonly nodeName: string;
  /** Of the cluster itself: what it issues is believed by every node. */
  readonly pki: Pick<Pki, 'pair'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends the renewal. */
  readonly signal: AbortSignal;
}

/** Resolves with what gives the pair of the moment, client certificate `system:node:NAME`, good for a day at most. */
export async function keepNodePair({ nodeName, pki, clock, log, signal }: NodePairOptions): Promise<() => KeyPairPem> {
  const fresh = () =>
    pki.pair(`node-${nodeName}-client`, {
      commonName: `system:node:${nodeName}`,
      organizations: ['system:nodes'],
      usage: 'client',
      days: DAYS,
    });
  let held = await fresh();
  let cancel = (): void => {};
  const look = (): void => {
    cancel = clock.schedule(LOOK_MS, () => {
      fresh()
        .then((pair) => {
          held = pair;
        })
        .catch((error: Error) => log.warn('node certificate not renewed', { node: nodeName, error: error.message }))
        .finally(() => {
          if (!signal.aborted) look();
        });
    });
  };
  if (!signal.aborted) look();
  signal.addEventListener('abort', () => cancel(), { once: true });
  return () => held;
}
