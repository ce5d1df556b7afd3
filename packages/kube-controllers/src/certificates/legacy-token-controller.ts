/**
 * Fills Secrets of type `kubernetes.io/service-account-token` with a token that has no end, the cluster's CA and the
 * namespace, and deletes them with their account (pkg/controller/serviceaccount/tokens_controller.go). Like the signing
 * controller it is given a function that signs.
 */

import { encodeBase64 } from '@coracle/apimachinery/meta/base64';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { SECRETS, SERVICE_ACCOUNTS } from '@coracle/apimachinery/types/resource-types';
import type { Secret } from '@coracle/apimachinery/types/types';
import { isConflict, isNotFound, orAbsent } from '@coracle/client/api-failure';
import { type Controller, createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';

export type SignLegacyToken = (claims: {
  readonly namespace: string;
  readonly serviceAccount: { readonly name: string; readonly uid: string };
  readonly secret: string;
}) => Promise<string>;

export interface LegacyTokenOptions extends ControllerEnvironment {
  readonly signToken: SignLegacyToken;
  /** PEM of the CA that signed the API server's certificate. */
  readonly rootCa: string;
}

export const legacyTokenRules = policyRules(
  'list watch update delete : core : secrets',
  'get list watch : core : serviceaccounts',
);

const TYPE = 'kubernetes.io/service-account-token';
const NAME = 'kubernetes.io/service-account.name';
const UID = 'kubernetes.io/service-account.uid';

/** Makes the controller; its keys are Secrets of that type. */
export function createLegacyTokenController(options: LegacyTokenOptions): Controller {
  const { client, informers, signToken, rootCa } = options;
  const secrets = informers.of(SECRETS, { fieldSelector: `type=${TYPE}` });
  const accounts = informers.of(SERVICE_ACCOUNTS);
  const base64 = (text: string): string => encodeBase64(new TextEncoder().encode(text));
  const accountOf = ({ metadata }: DeepReadonly<Secret>): string => metadata.annotations?.[NAME] ?? '';
  return createController({
    ...options,
    name: 'serviceaccount-token-controller',
    sources: [
      ownKeys(secrets),
      source(accounts, (account) =>
        secrets
          .list(account.metadata.namespace)
          .filter((secret) => accountOf(secret) === account.metadata.name)
          .map(({ metadata }) => ({ namespace: metadata.namespace ?? '', name: metadata.name ?? '' })),
      ),
    ],
    async reconcile(key, { signal }) {
      const held = secrets.get(key);
      const name = held ? accountOf(held) : '';
      if (!held || name === '' || held.metadata.deletionTimestamp !== undefined) return;
      const uid = await accountUid({ namespace: key.namespace, name }, signal);
      const claimed = held.metadata.annotations?.[UID];
      try {
        if (uid === undefined || (claimed !== undefined && claimed !== uid)) {
          const { uid: own = '', resourceVersion = '' } = held.metadata;
          await client.delete(SECRETS, key, { preconditions: { uid: own, resourceVersion }, signal });
          return;
        }
        const data = held.data ?? {};
        const complete = data['token'] && data['ca.crt'] === base64(rootCa) && data['namespace'] && claimed === uid;
        if (complete) return;
        const next = cloneJson(held) as Secret;
        const token =
          data['token'] ??
          base64(await signToken({ namespace: key.namespace, serviceAccount: { name, uid }, secret: key.name }));
        next.data = { ...next.data, 'ca.crt': base64(rootCa), namespace: base64(key.namespace), token };
        next.metadata.annotations = { ...next.metadata.annotations, [UID]: uid };
        await client.update(SECRETS, next, { signal });
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      }
    },
  });

  /** Asked of the API when the cache does not know the account: a Secret is not deleted on a cache that lags. */
  async function accountUid(
    key: { readonly namespace: string; readonly name: string },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const known = accounts.get(key);
    if (known) return known.metadata.uid;
    return (await orAbsent(client.get(SERVICE_ACCOUNTS, key, { signal })))?.metadata.uid;
  }
}
