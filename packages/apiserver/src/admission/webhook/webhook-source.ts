/** The configured webhooks: watched in the store, compiled once per revision, indexed by what they are asked about. */

import type { DeepReadonly, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { MutatingWebhook } from '@coracle/apimachinery/types/types';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import type { ObjectStore, StoredObject } from '../../cache/object-store.ts';
import { caBundleProblem } from '../../kinds/custom/conversion-rules.ts';
import type { ConnectOutbound } from '../../outbound/outbound.ts';
import { webhookTarget } from '../../outbound/webhook-target.ts';
import { ActionIndex } from '../matching/action-index.ts';
import { compileMatchConditions, type MatchConditions } from '../matching/match-conditions.ts';
import { isExemptFromWebhooks, matchRules } from '../matching/rules.ts';
import { compileSelectors, type Selectors } from '../matching/selectors.ts';
import type { Equivalents } from '../matching/served-kinds.ts';
import type { AdmissionOperation } from '../plugin.ts';

/** admissionregistration.k8s.io/v1 MutatingWebhook and ValidatingWebhook, after defaulting. */
export type Webhook = DeepReadonly<MutatingWebhook>;

/** A webhook ready to be asked. */
export interface Hook {
  readonly webhook: Webhook;
  readonly configuration: string;
  /** Unique among all webhooks. */
  readonly key: string;
  readonly selectors: Selectors;
  readonly conditions: MatchConditions | undefined;
  readonly call: ApiHandler;
  /** Why its `caBundle` is none: it is not called then. */
  readonly trustProblem: string | undefined;
  /** As error messages show it, without the query. */
  readonly url: string;
  readonly path: string;
  readonly query: string;
}

/** A webhook that is about a write, and the resource in whose version it wants the object. */
export interface Candidate {
  readonly hook: Hook;
  readonly matched: ResourceInfo;
  /** Its place among all webhooks, whatever they are about. */
  readonly index: number;
}

export type WebhookSource = ReturnType<typeof createWebhookSource>;

interface WebhookSourceOptions {
  readonly store: ObjectStore;
  /** `mutatingwebhookconfigurations` or its twin. */
  readonly resource: string;
  readonly equivalents: Equivalents;
  readonly generation: () => number;
  readonly connect: ConnectOutbound;
}

const NONE: readonly Candidate[] = [];

/** Watches the configurations of one kind. A webhook is asked from the moment its configuration is published. */
export function createWebhookSource(options: WebhookSourceOptions) {
  const { store, resource } = options;
  const prefix = `admissionregistration.k8s.io/${resource}`;
  let hooks: readonly Hook[] | undefined;
  const index = new ActionIndex((operation, info, subresource) =>
    isExemptFromWebhooks(info)
      ? NONE
      : candidatesOf(hooks ?? [], options, { operation, info, subresource, name: undefined }),
  );
  let generation = options.generation();
  store.watch(prefix, store.revision(), () => {
    hooks = undefined;
  });

  const refresh = (): readonly Hook[] => {
    if (hooks !== undefined && generation === options.generation()) return hooks;
    generation = options.generation();
    index.clear();
    hooks ??= store
      .list(prefix)
      .items.toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .flatMap((item) => hooksOf(item, options.connect));
    return hooks;
  };

  return {
    /** In the order of calling; the same array until something changes. */
    candidates: (operation: AdmissionOperation, info: ResourceInfo, subresource: string): readonly Candidate[] =>
      refresh().length === 0 ? NONE : index.get(operation, info, subresource),
  };
}

function candidatesOf(
  hooks: readonly Hook[],
  { equivalents }: WebhookSourceOptions,
  subject: Parameters<typeof matchRules>[1],
): readonly Candidate[] {
  const found: Candidate[] = [];
  for (const [index, hook] of hooks.entries()) {
    const { rules = [], matchPolicy } = hook.webhook;
    const faces = matchPolicy === 'Exact' ? [] : equivalents(subject.info, subject.subresource);
    const matched = matchRules(rules, subject, faces);
    if (matched) found.push({ hook, matched, index });
  }
  return found.length === 0 ? NONE : found;
}

/** What was compiled of each revision, for as long as it lives. */
const compiled = new WeakMap<StoredObject, readonly Hook[]>();

const hooksOf = (stored: StoredObject, connect: ConnectOutbound): readonly Hook[] =>
  getOrInsert(compiled, stored, () => {
    const { webhooks = [] } = stored.object as UnstructuredObject as { webhooks?: readonly Webhook[] };
    const seen = new Map<string, number>();
    return webhooks.map((webhook) => {
      const turn = seen.get(webhook.name) ?? 0;
      seen.set(webhook.name, turn + 1);
      return hookOf(webhook, { configuration: stored.name, turn, connect });
    });
  });

function hookOf(
  webhook: Webhook,
  { configuration, turn, connect }: { configuration: string; turn: number; connect: ConnectOutbound },
): Hook {
  const { target, url, path, query } = webhookTarget(webhook.clientConfig);
  return {
    webhook,
    configuration,
    key: `${configuration}/${webhook.name}/${turn}`,
    selectors: compileSelectors(webhook),
    conditions: webhook.matchConditions?.length
      ? compileMatchConditions(webhook.matchConditions, { failurePolicy: webhook.failurePolicy ?? 'Fail' })
      : undefined,
    call: connect(target),
    trustProblem: caBundleProblem(webhook.clientConfig.caBundle),
    url,
    path,
    query,
  };
}
