/**
 * Certificates that node agents know each other by, on an external cluster: keeps their authority (a Secret) and
 * its public list (a ConfigMap), approves and signs the requests of agents, and denies all others for the same signer.
 *
 * Any number of replicas may run: the authority lives in the Secret, and each write of it names the revision that was
 * read, so that of two that make one at the same moment the second finds that of the first. Secret and ConfigMap are
 * there from the start, empty (`coracle rbac`): who may create Secrets could create one that is given the token of
 * another account.
 */
import { checkRequestSignature } from '@coracle/apimachinery/certificates/certificate-request';
import { type DeepReadonly, keyOf, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS, SECRETS } from '@coracle/apimachinery/types/resource-types';
import type { ConfigMap, Secret } from '@coracle/apimachinery/types/types';
import {
  type Controller,
  createController,
  ownKeys,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createInformer, type Informer } from '@coracle/client/informer/informer';
import {
  type AuthorityPair,
  authorityStep,
  bundleOf,
  isPublished,
  newValidity,
  PEER_AUTHORITY,
  PEER_BUNDLE,
  PEER_SIGNER,
  type PeerAuthorities,
  readAuthorities,
  type Validity,
  validityOf,
  writeAuthorities,
} from './peer-authority.ts';
import { peerRequestRefusal } from './peer-request.ts';
import { hasCondition, pemOf, requestOf, withCertificate, withCondition } from './signing-request.ts';

/** The work on keys, which the host of the controllers does. */
export interface PeerKeyWork {
  /** Makes an authority. */
  make(options: { readonly commonName: string } & Validity): Promise<AuthorityPair>;
  /** Whether certificate and key can be read and belong together. */
  fits(pair: AuthorityPair): Promise<boolean>;
  /** Signs a request (PEM) as it stands; resolves to the certificate, PEM. */
  sign(
    pair: AuthorityPair,
    request: string,
    options: { readonly usages: readonly string[]; readonly expirationSeconds: number },
  ): Promise<string>;
}

export interface PeerControllerOptions extends ControllerEnvironment {
  readonly keys: PeerKeyWork;
  /** Where Secret and ConfigMap are. */
  readonly namespace: string;
  /** User name of the agents' service account. */
  readonly agentUser: string;
}

/** In the whole cluster. */
export const peerRules = policyRules(
  'list watch : certificates.k8s.io : certificatesigningrequests',
  'update : certificates.k8s.io : certificatesigningrequests/approval certificatesigningrequests/status',
  `approve sign : certificates.k8s.io : signers : ${PEER_SIGNER}`,
);

/** In the namespace of Secret and ConfigMap. */
export const peerNamespaceRules = policyRules(`list watch update : core : secrets configmaps : ${PEER_AUTHORITY}`);

/** Longest life of a certificate: agents ask anew long before. */
const MAX_SECONDS = 86_400;

/** Makes both loops: the authority, and the requests. */
export function createPeerController(options: PeerControllerOptions): Runnable {
  const { client, clock, log, namespace } = options;
  const scope = { namespace, fieldSelector: `metadata.name=${PEER_AUTHORITY}`, clock, log };
  const held: Held = {
    secrets: createInformer(client, SECRETS, scope),
    lists: createInformer(client, CONFIG_MAPS, scope),
    key: { namespace, name: PEER_AUTHORITY },
  };
  const authority = createAuthorityController(options, held);
  const requests = createRequestController(options, held);
  return {
    name: 'peer-certificates',
    async start(signal) {
      // Also when neither is there, of which no change tells.
      authority.enqueue(held.key);
      await Promise.all([
        held.secrets.start(signal),
        held.lists.start(signal),
        authority.start(signal),
        requests.start(signal),
      ]);
    },
  };
}

interface Held {
  readonly secrets: Informer<Secret>;
  readonly lists: Informer<ConfigMap>;
  readonly key: ObjectKey;
}

/** What the Secret holds, without what cannot be used. */
async function usable(data: DeepReadonly<Secret>['data'], keys: PeerKeyWork): Promise<PeerAuthorities> {
  const { current, next } = readAuthorities(data);
  return {
    ...(current && (await keys.fits(current)) && { current }),
    ...(next && (await keys.fits(next)) && { next }),
  };
}

function createAuthorityController(options: PeerControllerOptions, { secrets, lists, key }: Held): Controller {
  const { client, clock, keys } = options;
  let reportedMissing = '';
  const make = async (now: number): Promise<AuthorityPair> =>
    // A name of its own: of two authorities of one name nobody could say which of them has signed.
    keys.make({ commonName: `${PEER_AUTHORITY}@${Math.floor(now / 1000)}`, ...newValidity(now) });
  return createController({
    ...options,
    name: 'peer-authority-controller',
    sources: [ownKeys(secrets), ownKeys(lists)],
    async reconcile(_key, { signal, log: passLog }) {
      const [secret, list] = [secrets.get(key), lists.get(key)];
      if (!secret || !list) {
        const missing = [!secret && 'Secret', !list && 'ConfigMap'].filter(Boolean).join(' and ');
        if (missing !== reportedMissing)
          passLog.warn('no certificates for agents: apply what coracle rbac prints', {
            missing: `${missing} ${key.namespace}/${key.name}`,
          });
        reportedMissing = missing;
        return;
      }
      reportedMissing = '';
      const now = clock.now();
      const authorities = await usable(secret.data, keys);
      const { current, next } = authorities;
      const step = authorityStep(
        { current: current && validityOf(current.certificate), next: next && validityOf(next.certificate) },
        now,
      );
      const changes = {
        'make-current': async () => ({ current: await make(now) }),
        'make-next': async () => ({ ...authorities, next: await make(now) }),
        promote: async () => ({ current: next! }),
      };
      if (step.type !== 'rest') {
        const data = writeAuthorities(await changes[step.type]());
        await client.update(SECRETS, { ...(secret as Secret), data }, { signal });
        passLog.info('peer authority changed', { step: step.type });
        return;
      }
      const published = list.data?.[PEER_BUNDLE] ?? '';
      const bundle = bundleOf(authorities, published, now);
      if (bundle !== published) {
        const data = { ...list.data, [PEER_BUNDLE]: bundle };
        await client.update(CONFIG_MAPS, { ...(list as ConfigMap), data }, { signal });
      }
      return requeueAfter(step.ms);
    },
  });
}

function createRequestController(options: PeerControllerOptions, { secrets, lists, key: kept }: Held): Controller {
  const { client, informers, clock, keys, agentUser } = options;
  const requests = informers.of(CERTIFICATE_SIGNING_REQUESTS, { fieldSelector: `spec.signerName=${PEER_SIGNER}` });
  const all = (): ObjectKey[] => requests.list().map(keyOf);
  return createController({
    ...options,
    name: 'peer-request-controller',
    // A request may have waited for the authority.
    sources: [ownKeys(requests), source(secrets, all), source(lists, all)],
    async reconcile(key, { signal, log: passLog }) {
      const held = requests.get(key);
      if (held?.spec.signerName !== PEER_SIGNER || held.status?.certificate) return;
      if (hasCondition(held, 'Denied', 'Failed')) return;
      const decide = async (
        subresource: 'approval' | 'status',
        condition: Parameters<typeof withCondition>[1],
      ): Promise<void> => {
        await client.update(CERTIFICATE_SIGNING_REQUESTS, withCondition(held, condition), { subresource, signal });
        passLog.info('certificate request decided', { decision: condition.type, reason: condition.reason });
      };
      const fail = (message: string) =>
        decide('status', { type: 'Failed', reason: 'SignerValidationFailure', message });
      const isApproved = hasCondition(held, 'Approved');
      const refusal = peerRequestRefusal(held, agentUser);
      if (refusal) {
        // Whoever approved it by hand: the rule is that of the signer.
        if (isApproved) await fail(refusal.message);
        else await decide('approval', { type: 'Denied', ...refusal });
        return;
      }
      if (!isApproved) {
        const message = 'The requester is the agent of that node.';
        await decide('approval', { type: 'Approved', reason: 'AutoApproved', message });
        return;
      }
      const { current } = await usable(secrets.get(kept)?.data, keys);
      const isKnown = current && isPublished(current, lists.get(kept)?.data?.[PEER_BUNDLE] ?? '');
      if (!isKnown || (validityOf(current.certificate)?.notAfter ?? 0) <= clock.now()) return;
      const forged = await checkRequestSignature(requestOf(held));
      if (forged !== undefined) return fail(forged);
      const { usages = [], expirationSeconds = MAX_SECONDS, request } = held.spec;
      const limits = { usages, expirationSeconds: Math.min(expirationSeconds, MAX_SECONDS) };
      const signed = withCertificate(held, await keys.sign(current, pemOf(request), limits));
      await client.update(CERTIFICATE_SIGNING_REQUESTS, signed, { subresource: 'status', signal });
      passLog.info('peer certificate signed', { requester: held.spec.username });
    },
  });
}
