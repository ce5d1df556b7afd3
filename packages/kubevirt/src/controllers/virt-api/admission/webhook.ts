/** What a webhook of virt-api is: whom it is asked by, and what it is given. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import type { VirtualMachineInstancePreset } from '../../../kinds/kubevirt.ts';
import type { InferenceRef } from '../../../rules/instancetype/infer.ts';
import type { AdmissionContext } from './admission-context.ts';
import type { ClaimUuid } from './claim-uuid.ts';

/** An object whose labels a decision would show to who asks: `group` of the resource beside the names. */
export type ReadTarget = InferenceRef & { readonly group: string };

export type Operation = AdmissionContext['operation'];

/** One object in front of a webhook. On DELETE `object` is the stored one. */
export interface Subject<T = KubeObject> {
  readonly object: DeepReadonly<T>;
  readonly old: DeepReadonly<T> | undefined;
  readonly namespace: string;
  readonly context: AdmissionContext;
  readonly client: Client;
  /** Whether who asks may get an object. */
  mayRead(target: ReadTarget): Promise<boolean>;
  /** Nothing may be written on behalf of such a request. */
  readonly dryRun: boolean;
  /** The presets of a namespace. */
  presets(namespace: string): readonly Preset[] | Promise<readonly Preset[]>;
  /** Says which other machines have a firmware UUID, and holds it for one that is about to. */
  claimUuid: ClaimUuid;
  /** A text for the client. */
  warn(text: string): void;
  /** Has a copy of an instance type or preference created together with the object, which owns it. */
  capture(copy: ControllerRevision): void;
}

export type Preset = DeepReadonly<VirtualMachineInstancePreset>;

export interface Target {
  /** `virtualmachine-validator.kubevirt.io`: named in refusals. */
  readonly name: string;
  /** Where a cluster reaches it. */
  readonly path: string;
  readonly group: string;
  readonly resource: string;
  /** '' for the object itself. */
  readonly subresource: string;
  readonly operations: readonly Operation[];
}

export interface MutatingWebhook extends Target {
  /** @throws DefaultsError, CauseRefusal, WebhookRefusal */
  mutate(subject: Subject): Promise<KubeObject> | KubeObject;
}

export interface ValidatingWebhook extends Target {
  /** @throws DefaultsError, WebhookRefusal, ApiError when the API cannot be asked */
  validate(subject: Subject): FieldErrors;
  warnings?(subject: Subject): readonly string[];
}

type FieldErrors = Promise<readonly FieldError[]> | readonly FieldError[];

/** Whom a row is about: `OPERATION... : NAME : PATH`, for the objects of a kind. */
function targetOf<T extends KubeObject>({ group, resource }: ResourceType<T>, row: string): Target {
  const [operations = '', name = '', path = ''] = row.split(' : ');
  return { name, path, operations: operations.split(' ') as Operation[], group, resource, subresource: '' };
}

/** A webhook about one kind, which fills in. */
export const mutating = <T extends KubeObject>(
  type: ResourceType<T>,
  row: string,
  mutate: (subject: Subject<T>) => Promise<KubeObject> | KubeObject,
): MutatingWebhook => ({
  ...targetOf(type, row),
  mutate: mutate as unknown as MutatingWebhook['mutate'],
});

/** A webhook about one kind, which refuses. */
export const validating = <T extends KubeObject>(
  type: ResourceType<T>,
  row: string,
  validate: (subject: Subject<T>) => FieldErrors,
  warnings?: (subject: Subject<T>) => readonly string[],
): ValidatingWebhook => ({
  ...targetOf(type, row),
  validate: validate as unknown as ValidatingWebhook['validate'],
  ...(warnings && { warnings: warnings as unknown as (subject: Subject) => readonly string[] }),
});
