/**
 * virt-api's admission in process: what the embedded server calls for KubeVirt's kinds. It decides and throws as the
 * webhooks do, with the same refusals.
 */
import { KUBEVIRT_GROUP } from '../../../api/kinds/kubevirt/kubevirt.ts';
import type { DeepReadonly, KubeObject } from '../../../api/meta/object.ts';
import type { Client } from '../../../client/client.ts';
import type { ClusterConfig } from '../../../domain/machine-defaults/cluster-config.ts';
import { DefaultsError } from '../../../domain/machine-defaults/implicit-devices.ts';
import { type AdmissionContext, type AdmissionUser, isKubeVirtComponent } from './admission-context.ts';
import { denial, rejection } from './causes.ts';
import { MUTATING_WEBHOOKS, type Operation, type Subject, VALIDATING_WEBHOOKS } from './virt-webhooks.ts';

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
  readonly applyInstancetype?: AdmissionContext['applyInstancetype'];
}

/** One write in front of the admission. On DELETE `object` is the stored object. */
export interface VirtAdmissionRequest {
  readonly group: string;
  readonly resource: string;
  /** '' for the object itself; nothing else is judged here. */
  readonly subresource: string;
  readonly operation: Operation;
  readonly namespace: string;
  readonly object: DeepReadonly<KubeObject>;
  readonly old: DeepReadonly<KubeObject> | undefined;
  readonly user: AdmissionUser;
}

export interface VirtAdmission {
  /** Whether any webhook is asked about such a write. */
  handles(request: Pick<VirtAdmissionRequest, 'group' | 'resource' | 'subresource' | 'operation'>): boolean;
  /** The object with everything filled in; the argument is left alone. Throws ApiError. */
  mutate(request: VirtAdmissionRequest): KubeObject;
  /** Returns the warnings for the client. Throws ApiError 422 (or 400) to refuse. */
  validate(request: VirtAdmissionRequest): Promise<readonly string[]>;
}

export function virtAdmission(options: VirtAdmissionOptions): VirtAdmission {
  const asks = (
    hook: { readonly resource: string; readonly operations: readonly Operation[] },
    request: Pick<VirtAdmissionRequest, 'resource' | 'operation'>,
  ): boolean => hook.resource === request.resource && hook.operations.includes(request.operation);
  const isOurs = ({ group, subresource }: Pick<VirtAdmissionRequest, 'group' | 'subresource'>): boolean =>
    group === KUBEVIRT_GROUP && subresource === '';
  return {
    handles: (request) =>
      isOurs(request) && [...MUTATING_WEBHOOKS, ...VALIDATING_WEBHOOKS].some((hook) => asks(hook, request)),

    mutate(request) {
      let { object } = request;
      if (!isOurs(request)) return object as KubeObject;
      for (const hook of MUTATING_WEBHOOKS) {
        if (!asks(hook, request)) continue;
        try {
          object = hook.mutate(subjectOf(options, { ...request, object }));
        } catch (error) {
          if (error instanceof DefaultsError) throw rejection(hook.name, error.message);
          throw error;
        }
      }
      return object as KubeObject;
    },

    async validate(request) {
      if (!isOurs(request)) return [];
      const warnings: string[] = [];
      const subject = subjectOf(options, request);
      for (const hook of VALIDATING_WEBHOOKS) {
        if (!asks(hook, request)) continue;
        try {
          const causes = await hook.validate(subject);
          if (causes.length > 0) throw denial(hook.name, causes);
        } catch (error) {
          if (error instanceof DefaultsError) throw rejection(hook.name, error.message);
          throw error;
        }
        warnings.push(...(hook.warnings?.(subject) ?? []));
      }
      return warnings;
    },
  };
}

/** What a webhook is given for one write. */
export function subjectOf(
  options: VirtAdmissionOptions,
  request: Pick<VirtAdmissionRequest, 'object' | 'old' | 'namespace' | 'operation' | 'user'>,
): Subject {
  const { object, old, namespace, operation, user } = request;
  return {
    object,
    old,
    namespace,
    client: options.client,
    context: {
      operation,
      user,
      config: options.config(),
      trusted: (options.isTrusted ?? isKubeVirtComponent)(user),
      randomUuid: options.randomUuid,
      now: options.now(),
      ...(options.applyInstancetype && { applyInstancetype: options.applyInstancetype }),
    },
  };
}
