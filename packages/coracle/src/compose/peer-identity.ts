/**
 * What an agent proves its name to other agents with on an external cluster: a certificate that it asks
 * `kube-controllers/certificates/peer-controller.ts` for, at its start and again before it expires. The key is made here, kept in a
 * file of its owner's, and never sent.
 *
 * Flow: read the list of authorities > is the certificate held still good > else a token that names the node > a request >
 * signed > kept. Each minute anew. Until it has one the agent says why, and guests stay where they are.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS, NODES } from '@coracle/apimachinery/types/resource-types';
import { isNotFound, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { PEER_AUTHORITY, PEER_BUNDLE, PEER_SIGNER } from '@coracle/kube-controllers/certificates/peer-authority';
import type { PeerIdentity } from '@coracle/node-agent/network/peer';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { createDeferred } from '@coracle/runtime/signal/deferred';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { KeyPairPem, PairStore } from '../config/pki.ts';
import { COMPONENT_NAMESPACE } from './components.ts';
import { createNodeSigningRequest, lifeLeft, RENEW_AT, waitForSignature } from './node-signing-request.ts';
import type { BoundNode, RemoteConnection } from './remote-components.ts';

export interface PeerIdentityOptions {
  readonly nodeName: string;
  /** Acts as the agent. */
  readonly client: Client;
  /** A client whose token names the node, for one request. */
  readonly connectBound: (node: BoundNode, signal: AbortSignal) => Promise<RemoteConnection>;
  /** Where the certificate is kept from one start to the next. */
  readonly pairs: PairStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export type KeptPeerIdentity = ReturnType<typeof keepPeerIdentity>;

const LOOK_MS = 60_000;
/** A signature is waited for this long at a time; the request stays, and is looked at again. */
const SIGNED_WITHIN_MS = 10_000;
const FIRST_RETRY_MS = 1000;
/** What was refused will be refused again, until somebody changes something. */
const REFUSED_MS = 300_000;
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

class Refused extends Error {}
/** Nothing is wrong: the first request comes before the node. */
class TooEarly extends Error {}

/** Begins to ask; the identity can be used as soon as it has no obstacle. */
export function keepPeerIdentity(options: PeerIdentityOptions) {
  const { nodeName, client, pairs, clock, log } = options;
  const life = createLinkedController(options.signal);
  const { signal } = life;
  const file = `node-${nodeName}-peer`;
  const listeners = new Set<() => void>();
  const looked = createDeferred();
  let held = pairs.read(file);
  let bundle = '';
  let isKnown = false;
  /** A request that waits to be signed, with the key that it is for. */
  let asked: { readonly name: string; readonly key: string } | undefined;
  /** Until when nothing is asked for again. */
  let refused: { readonly error: Refused; readonly until: number } | undefined;
  let why = 'it has not requested one yet';
  let reported: string | undefined = why;

  const obstacle = (): string | undefined => (held && isKnown && lifeLeft(held, clock.now()) > 0 ? undefined : why);
  const notice = (): void => {
    const now = obstacle();
    if (now === reported) return;
    reported = now;
    for (const listener of listeners) listener();
  };
  const readBundle = async (): Promise<void> => {
    const key = { namespace: COMPONENT_NAMESPACE, name: PEER_AUTHORITY };
    const found = await orAbsent(client.get(CONFIG_MAPS, key, { signal }));
    bundle = found?.data?.[PEER_BUNDLE] ?? '';
    isKnown = held !== undefined && isSignedBy(held, bundle);
    notice();
    looked.resolve();
    if (bundle === '')
      throw new Error(
        `ConfigMap ${key.namespace}/${key.name} names no authority: coracle rbac prints it, and coracle controllers fills it (peer-certificates)`,
      );
  };
  const look = async (): Promise<void> => {
    await readBundle();
    if (held && isKnown && lifeLeft(held, clock.now()) > RENEW_AT) return;
    if (refused && refused.until > clock.monotonic()) throw refused.error;
    asked ??= await ask(options, signal);
    const certificate = await signed(options, asked.name, signal).catch((error: unknown) => {
      if (error instanceof Refused || isNotFound(error)) asked = undefined;
      if (error instanceof Refused) refused = { error, until: clock.monotonic() + REFUSED_MS };
      throw error;
    });
    held = { certificate, key: asked.key };
    asked = undefined;
    pairs.write(file, held);
    // With the authority that has signed it, which may be newer than the list.
    await readBundle();
    if (!isKnown) throw new Error('its certificate is of no authority that is published');
    log.info('peer certificate received', { node: nodeName });
  };
  const run = async (): Promise<void> => {
    let retryMs = FIRST_RETRY_MS;
    for (;;) {
      let pauseMs = LOOK_MS;
      try {
        await look();
        retryMs = FIRST_RETRY_MS;
        why = 'the one it had is no longer valid';
      } catch (error) {
        signal.throwIfAborted();
        const { message } = error as Error;
        if (message !== why && !(error instanceof TooEarly))
          log.warn('no new peer certificate', { node: nodeName, error: message });
        why = message;
        pauseMs = retryMs;
        retryMs = Math.min(retryMs * 2, LOOK_MS);
      }
      notice();
      looked.resolve();
      await clock.sleep(pauseMs, signal);
    }
  };
  const done = run().catch((error: Error) => {
    looked.resolve();
    if (!signal.aborted) log.error('peer certificates are not kept any more', { error: error.stack ?? error.message });
  });

  const identity: PeerIdentity = {
    pair() {
      const problem = obstacle();
      if (!held || problem !== undefined) throw new Error(problem);
      return held;
    },
    get ca() {
      return bundle;
    },
    obstacle,
    onChange: (listener) => void listeners.add(listener),
  };
  return {
    identity,
    /** Resolves when it is known whether the certificate of the last start is good, or the API has failed to tell. */
    looked: looked.promise,
    /** Asks no more; resolves when it has stopped. */
    async close(): Promise<void> {
      life.abort(new Error('the agent stops'));
      await done;
      life.release();
    },
  };
}

/** Whether the certificate is of one of these authorities, and the key is its own: a crash may have left a new one beside it. */
function isSignedBy({ certificate, key }: KeyPairPem, bundle: string): boolean {
  try {
    const own = new X509Certificate(certificate);
    if (!own.checkPrivateKey(createPrivateKey(key))) return false;
    const authorities = (bundle.match(PEM) ?? []).map((pem) => new X509Certificate(pem));
    return authorities.some((ca) => own.checkIssued(ca) && own.verify(ca.publicKey));
  } catch {
    return false;
  }
}

/** Makes a key and a request for it, under a token that names the node. */
async function ask({ nodeName, client, connectBound }: PeerIdentityOptions, signal: AbortSignal) {
  const node = await orAbsent(client.get(NODES, { namespace: '', name: nodeName }, { signal }));
  if (!node) throw new TooEarly('the node has not registered yet');
  const named = { signerName: PEER_SIGNER, generateName: 'coracle-peer-' };
  const { object, key } = await createNodeSigningRequest(nodeName, named);
  const bound = await connectBound({ name: nodeName, uid: node.metadata.uid ?? '' }, signal);
  try {
    const made = await bound.client.create(CERTIFICATE_SIGNING_REQUESTS, object, { signal });
    return { name: made.metadata.name ?? '', key };
  } finally {
    await bound.close();
  }
}

/** Waits a while for the certificate, PEM. Rejects with one line; with `Refused` when it will never come. */
async function signed({ client, clock }: PeerIdentityOptions, name: string, signal: AbortSignal): Promise<string> {
  const signature = await waitForSignature(client, name, { clock, withinMs: SIGNED_WITHIN_MS, signal });
  switch (signature.outcome) {
    case 'signed':
      return signature.certificate;
    case 'refused':
      throw new Refused(`certificate request ${name} was refused: ${signature.message}`);
    case 'waits':
      throw new Error(`certificate request ${name} waits for coracle controllers to sign it (peer-certificates)`);
  }
}
