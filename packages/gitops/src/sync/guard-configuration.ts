/**
 * Tells an external API server to ask the guard of declared fields: fills the configuration that
 * somebody made to turn it on, with a webhook for each version of a group that a source declares. Webhooks are added and put
 * right, and taken away with the configuration alone.
 */
import { encodeBase64 } from '@coracle/apimachinery/meta/base64';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { clusterType, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { createController, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import { GUARD_NAME, guardHookName, guardScope, isGuardOn } from '../guard/decide-write.ts';
import { createGuardWebhook, GUARD_WEBHOOK_PATH } from '../guard/guard-webhook.ts';
import { DECLARED_VERSION, MANAGED_BY } from '../status/metadata-keys.ts';
import { syncError } from '../status/sync-error.ts';

/** Serves a handler at a path of its own; `url` is https and has the path, `ca` is PEM. */
export interface ServeGuard {
  /** Accounts that may write anything: that of this component, and of those that clean up. */
  readonly trusted: readonly string[];
  readonly serve: (
    handler: ApiHandler,
    path: string,
  ) => Promise<{ readonly url: string; readonly ca: string; close(): Promise<void> }>;
}

interface Hook {
  readonly name?: string;
}

export interface WebhookConfiguration extends KubeObject {
  webhooks?: readonly Hook[];
}

export const GUARD_CONFIGURATIONS = clusterType<WebhookConfiguration>(
  'admissionregistration.k8s.io/v1',
  'validatingwebhookconfigurations',
  'ValidatingWebhookConfiguration',
);

type GroupVersion = Pick<ResourceType<KubeObject>, 'group' | 'version'>;

export interface GuardConfiguratorOptions extends ControllerEnvironment {
  readonly serve: ServeGuard;
  /** True while upstream's own components are there. */
  readonly isAside: () => boolean;
  /** Versions of what is declared now. */
  readonly versions: () => readonly GroupVersion[];
}

const encoder = new TextEncoder();
const KEY = { namespace: '', name: GUARD_NAME };
const INVENTORIES = { group: 'kpt.dev', version: 'v1alpha1' };

/** Makes it; nothing is served before `start`. */
export function createGuardConfigurator({ client, informers, clock, log, ...options }: GuardConfiguratorOptions): {
  /** Other versions may be declared now. */
  declaredChanged(): void;
  /** Serves until the signal aborts. Rejects when nothing can be served there. */
  start(signal: AbortSignal): Promise<void>;
} {
  const informer = informers.of(GUARD_CONFIGURATIONS, { fieldSelector: `metadata.name=${GUARD_NAME}` });
  let address: { readonly url: string; readonly ca: string } | undefined;
  /** As they were written last: what differs was altered by somebody else. */
  let written: readonly Hook[] | undefined;
  const controller = createController({
    name: 'declared-fields-guard',
    client,
    clock,
    log,
    sources: [source(informer, () => [KEY])],
    async reconcile(_, { signal }) {
      const found = informer.get(KEY) as WebhookConfiguration | undefined;
      const scope = guardScope(found);
      if (!found || !address || scope === 'nothing' || options.isAside()) return;
      const { webhooks = [] } = found;
      const wanted = guardHooks(options.versions(), webhooks, { ...address, scope });
      if (deepEqual(webhooks, wanted)) return;
      if (written && !deepEqual(webhooks, written))
        log.warn('the webhooks of the guard were changed, and are restored', {
          error: syncError(2014, GUARD_NAME).errorMessage.split('\n')[0] ?? '',
        });
      await client.update(GUARD_CONFIGURATIONS, { ...found, webhooks: wanted }, { signal });
      written = wanted;
    },
  });
  return {
    declaredChanged: () => controller.enqueue(KEY),
    async start(signal) {
      const handler = createGuardWebhook(options.serve.trusted, () => isGuardOn(informer.get(KEY)));
      const served = await options.serve.serve(handler, GUARD_WEBHOOK_PATH);
      address = served;
      try {
        controller.enqueue(KEY);
        await controller.start(signal);
      } finally {
        await served.close();
      }
    },
  };
}

/** The webhooks, as the API server completes them: those that are there and ours, and those of more versions. */
function guardHooks(
  versions: readonly GroupVersion[],
  present: readonly Hook[],
  { url, ca, scope }: { readonly url: string; readonly ca: string; readonly scope: 'dependents' | 'all' },
): Hook[] {
  const rest = {
    clientConfig: { url, caBundle: encodeBase64(encoder.encode(ca)) },
    failurePolicy: 'Ignore',
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    sideEffects: 'None',
    timeoutSeconds: 3,
    admissionReviewVersions: ['v1'],
  };
  const rule = ({ group, version }: GroupVersion, resources: string): object => ({
    apiGroups: [group],
    apiVersions: [version],
    operations: scope === 'all' ? ['CREATE', 'UPDATE', 'DELETE'] : ['DELETE'],
    resources: [resources],
    scope: '*',
  });
  const hooks = new Map<string, Hook>();
  for (const version of [...versions, ...versionsOf(present)])
    hooks.set(guardHookName(version), {
      name: guardHookName(version),
      rules: [rule(version, '*')],
      objectSelector: { matchLabels: { [DECLARED_VERSION]: version.version } },
      ...rest,
    } as Hook);
  const inventories = {
    name: `resourcegroups.${guardHookName(INVENTORIES)}`,
    rules: [rule(INVENTORIES, 'resourcegroups')],
    objectSelector: { matchLabels: { [MANAGED_BY.key]: MANAGED_BY.value } },
    ...rest,
  };
  return [...hooks.values(), ...(scope === 'all' ? [inventories] : [])].sort((a, b) =>
    (a.name ?? '') < (b.name ?? '') ? -1 : 1,
  );
}

/** Of webhooks that are there already: another start of this component made them. */
function versionsOf(hooks: readonly Hook[]): GroupVersion[] {
  return hooks.flatMap((hook) => {
    const [rule] = (hook as { rules?: { apiGroups?: string[]; apiVersions?: string[] }[] }).rules ?? [];
    const [group = '*', version = '*'] = [rule?.apiGroups?.[0], rule?.apiVersions?.[0]];
    return group === '*' || version === '*' || hook.name !== guardHookName({ group, version })
      ? []
      : [{ group, version }];
  });
}
