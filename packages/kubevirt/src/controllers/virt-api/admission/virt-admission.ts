/**
 * virt-api's admission in process: what the embedded server calls for KubeVirt's kinds. It decides and throws as the
 * webhooks do, with the same refusals.
 */

import type { DeepReadonly, KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import { VIRTUAL_MACHINE_INSTANCE_PRESETS, type VirtualMachineInstancePreset } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import { DefaultsError } from '../../../rules/machine-defaults/implicit-devices.ts';
import { isAllowed } from '../../access-review.ts';
import { type AdmissionUser, isKubeVirtComponent } from './admission-context.ts';
import { CauseRefusal, denial, refusedBy, rejection, WebhookRefusal } from './causes.ts';
import type { ClaimUuid } from './claim-uuid.ts';
import { isWebhookTarget, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from './virt-webhooks.ts';
import type { Operation, ReadTarget, Subject, Target } from './webhook.ts';

export interface VirtAdmissionOptions {
  /** For what a decision must look up: the instance of a migration, other KubeVirt objects. */
  readonly client: Client;
  /** The settings now. */
  config(): ClusterConfig;
  /** A random version 4 UUID. */
  randomUuid(): string;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Who counts as one of KubeVirt's components; by their usual service accounts when absent. */
  readonly isTrusted?: (user: AdmissionUser) => boolean;
  /** Who else reports on instances: nodes, where the server knows them. Nobody when absent. */
  readonly isNode?: (user: AdmissionUser) => boolean;
  /** Whether a user may get an object; asked of the API server when absent. */
  mayRead?(user: AdmissionUser, target: ReadTarget): Promise<boolean>;
  /** Who else has a firmware UUID; where that cannot be had cheaply nobody is asked, and nobody warned. */
  readonly claimUuid?: ClaimUuid;
  /** Presets of a namespace, where they can be had for less than a request; asked of the client when absent. */
  presets?(namespace: string): readonly DeepReadonly<VirtualMachineInstancePreset>[];
}

/** One write in front of the admission. On DELETE `object` is the stored object. */
export interface VirtAdmissionRequest {
  readonly group: string;
  readonly resource: string;
  /** '' for the object itself. */
  readonly subresource: string;
  readonly operation: Operation;
  readonly namespace: string;
  readonly object: ReadonlyObject;
  readonly old: ReadonlyObject | undefined;
  readonly user: AdmissionUser;
  /** Absent = not. */
  readonly dryRun?: boolean;
}

export interface VirtAdmission {
  /** Whether any webhook is asked about such a write. */
  handles(request: Pick<VirtAdmissionRequest, 'group' | 'resource' | 'subresource' | 'operation'>): boolean;
  /**
   * The object with everything filled in; the argument is left alone. A promise only where something must be looked up.
   * Throws ApiError.
   */
  mutate(request: VirtAdmissionRequest): Promise<Mutated> | Mutated;
  /** Throws ApiError to refuse: 422, 400, or 429 for an eviction. */
  validate(request: VirtAdmissionRequest): Promise<Validated>;
}

export interface Mutated {
  readonly object: KubeObject;
  /** For the client. */
  readonly warnings: readonly string[];
}

export interface Validated {
  /** For the client. */
  readonly warnings: readonly string[];
  /** To be created together with the object, which owns them. */
  readonly captures: readonly ControllerRevision[];
}

export function virtAdmission(options: VirtAdmissionOptions): VirtAdmission {
  const asks = (hook: Target, request: VirtAdmissionRequest): boolean =>
    hook.resource === request.resource &&
    hook.group === request.group &&
    hook.subresource === request.subresource &&
    hook.operations.includes(request.operation);
  return {
    handles: isWebhookTarget,

    mutate(request) {
      // No object has more than one mutating webhook.
      const hook = MUTATING_WEBHOOKS.find((each) => asks(each, request));
      if (hook === undefined) return { object: request.object as KubeObject, warnings: [] };
      const warnings: string[] = [];
      const refuse = (error: unknown): never => {
        throw refusalOf(hook.name, error);
      };
      try {
        const object = hook.mutate({ ...subjectOf(options, request), warn: (text) => warnings.push(text) });
        return object instanceof Promise
          ? object.then((mutated) => ({ object: mutated, warnings }), refuse)
          : { object, warnings };
      } catch (error) {
        return refuse(error);
      }
    },

    async validate(request) {
      const warnings: string[] = [];
      const captures: ControllerRevision[] = [];
      const subject = {
        ...subjectOf(options, request),
        capture: (copy: ControllerRevision) => captures.push(copy),
        warn: (text: string) => warnings.push(text),
      };
      for (const hook of VALIDATING_WEBHOOKS) {
        if (!asks(hook, request)) continue;
        try {
          const causes = await hook.validate(subject);
          if (causes.length > 0) throw denial(hook.name, causes);
        } catch (error) {
          throw refusalOf(hook.name, error);
        }
        warnings.push(...(hook.warnings?.(subject) ?? []));
      }
      return { warnings, captures };
    },
  };
}

/** How a client sees that a webhook refused. */
function refusalOf(webhook: string, error: unknown): unknown {
  if (error instanceof WebhookRefusal) return refusedBy(webhook, error);
  if (error instanceof CauseRefusal) return denial(webhook, error.causes);
  if (error instanceof DefaultsError) return rejection(webhook, error.message);
  return error;
}

/** What a webhook is given for one write. */
export function subjectOf(
  options: VirtAdmissionOptions,
  request: Pick<VirtAdmissionRequest, 'object' | 'old' | 'namespace' | 'operation' | 'user' | 'dryRun'>,
): Subject {
  const { object, old, namespace, operation, user, dryRun = false } = request;
  const trusted = options.isTrusted?.(user) ?? isKubeVirtComponent(user);
  return {
    object,
    old,
    namespace,
    dryRun,
    client: options.client,
    mayRead: (target) => options.mayRead?.(user, target) ?? isAllowed(options.client, user, { ...target, verb: 'get' }),
    presets: (of) =>
      options.presets?.(of) ??
      options.client.list(VIRTUAL_MACHINE_INSTANCE_PRESETS, { namespace: of }).then(({ items }) => items),
    claimUuid: options.claimUuid ?? (() => []),
    warn: () => {},
    capture: () => {},
    context: {
      operation,
      user,
      config: options.config(),
      trusted,
      reports: trusted || options.isNode?.(user) === true,
      randomUuid: options.randomUuid,
      now: options.now(),
    },
  };
}
