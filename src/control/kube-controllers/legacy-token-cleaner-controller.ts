/**
 * Tokens that controllers of old put into Secrets, and that nobody has used for a year, are marked, which has the server
 * refuse them; after another year they go (pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go). Whoever
 * takes the mark off, or uses the token before, keeps it. What users made, and what a Pod mounts, is left alone.
 */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import { dayOf, INVALID_SINCE, LAST_USED, TOKEN_TRACKING } from '../../api/kinds/builtin/legacy-tokens.ts';
import { podReferences } from '../../api/kinds/builtin/pod-references.ts';
import { CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS } from '../../api/kinds/builtin/resource-types.ts';
import type { Secret } from '../../api/kinds/builtin/types.ts';
import type { ResourceType } from '../../api/meta/gvk.ts';
import type { DeepReadonly, KubeObject, ObjectKey } from '../../api/meta/object.ts';
import { isConflict, isNotFound } from '../../client/api-failure.ts';
import type { CallOptions, Client } from '../../client/client.ts';
import { type Controller, createController, DONE, ownKeys, requeueAfter } from '../../client/controller/controller.ts';
import type { ControllerEnvironment } from '../../client/controller/environment.ts';

export const legacyTokenCleanerRules: PolicyRule[] = [
  { apiGroups: [''], resources: ['secrets'], verbs: ['list', 'watch', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['configmaps'], resourceNames: [TOKEN_TRACKING], verbs: ['get'] },
  { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['get'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
];

const DAY_MS = 86_400_000;
/** Unused for so long a token is marked, and marked for so long it goes. */
const UNUSED_MS = 365 * DAY_MS;
/** Each Secret is looked at again after this long. */
const LOOK_AGAIN_MS = DAY_MS;
const POD_PAGE = 500;

const TYPE = 'kubernetes.io/service-account-token';
const NAME = 'kubernetes.io/service-account.name';
const UID = 'kubernetes.io/service-account.uid';

/** What its own dates say of a token, `since` being the day from which on uses are noted. */
export function tokenVerdict(
  { metadata }: DeepReadonly<Secret>,
  { since, now }: { readonly since: string | undefined; readonly now: number },
): 'keep' | 'mark' | 'delete' {
  // That day itself may have begun before uses were noted.
  if (!isDay(since) || now < Date.parse(since) + DAY_MS + UNUSED_MS) return 'keep';
  const { creationTimestamp = '', deletionTimestamp, labels = {} } = metadata;
  const bound = now - UNUSED_MS;
  if (deletionTimestamp !== undefined || !(Date.parse(creationTimestamp) < bound)) return 'keep';
  const used = labels[LAST_USED];
  // A label that says no day says nothing of the last use.
  if (used !== undefined && !(isDay(used) && used < dayOf(bound))) return 'keep';
  const marked = labels[INVALID_SINCE];
  if (!isDay(marked)) return 'mark';
  return marked < dayOf(bound) ? 'delete' : 'keep';
}

const isDay = (text: string | undefined): text is string =>
  text !== undefined && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));

/** Makes the controller; its keys are Secrets that hold tokens. Accounts and Pods are asked for when a day has come. */
export function createLegacyTokenCleanerController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock, log } = environment;
  const secrets = informers.of(SECRETS, { fieldSelector: `type=${TYPE}` });
  return createController({
    name: 'legacy-serviceaccount-token-cleaner-controller',
    client,
    clock,
    log,
    sources: [ownKeys(secrets)],
    async reconcile(key, { signal }) {
      const held = secrets.get(key);
      if (held?.type !== TYPE) return DONE;
      const now = clock.now();
      const tracking = await found(client, CONFIG_MAPS, { namespace: 'kube-system', name: TOKEN_TRACKING }, { signal });
      const verdict = tokenVerdict(held, { since: tracking?.data?.['since'], now });
      const again = requeueAfter(LOOK_AGAIN_MS);
      if (verdict === 'keep' || !(await isGenerated(held, signal)) || (await isMounted(key, signal))) return again;
      const { uid = '', resourceVersion = '' } = held.metadata;
      try {
        if (verdict === 'delete') {
          await client.delete(SECRETS, key, { preconditions: { resourceVersion }, signal });
        } else {
          const body = { metadata: { uid, labels: { [INVALID_SINCE]: dayOf(now) } } };
          await client.patch(SECRETS, key, { type: 'merge', body }, { signal });
        }
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      }
      return again;
    },
  });

  /** Accounts name the Secrets that controllers made for them; nothing else tells those from a user's. */
  async function isGenerated({ metadata }: DeepReadonly<Secret>, signal: AbortSignal): Promise<boolean> {
    const { namespace = '', name, annotations } = metadata;
    const account = annotations?.[NAME];
    if (!account) return false;
    const live = await found(client, SERVICE_ACCOUNTS, { namespace, name: account }, { signal });
    const claimed = annotations[UID];
    if (!live || (claimed && claimed !== live.metadata.uid)) return false;
    return live.secrets?.some((secret) => secret.name === name) ?? false;
  }

  async function isMounted({ namespace, name }: ObjectKey, signal: AbortSignal): Promise<boolean> {
    for (let token: string | undefined; ; ) {
      const page = await client.list(PODS, {
        namespace,
        limit: POD_PAGE,
        ...(token && { continue: token }),
        signal,
      });
      if (page.items.some((pod) => podReferences(pod).secrets.has(name))) return true;
      token = page.metadata.continue;
      if (!token) return false;
    }
  }
}

/** Undefined when it is not there. */
async function found<T extends KubeObject>(
  client: Client,
  type: ResourceType<T>,
  key: ObjectKey,
  options: CallOptions,
): Promise<T | undefined> {
  try {
    return await client.get(type, key, options);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
