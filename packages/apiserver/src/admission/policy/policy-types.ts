/** admissionregistration.k8s.io/v1 policies and bindings, after defaulting. */
import type { DeepReadonly, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type * as types from '@coracle/apimachinery/types/types';

export type MatchResources = DeepReadonly<types.MatchResources>;

export type ParamKind = DeepReadonly<types.ParamKind>;

export type ParamRef = DeepReadonly<types.ParamRef>;

export type Variable = DeepReadonly<types.Variable>;

export type Validation = DeepReadonly<types.Validation>;

/** What both kinds of policies have. */
export type PolicySpec = Pick<
  ValidatingPolicySpec,
  'paramKind' | 'matchConstraints' | 'matchConditions' | 'variables' | 'failurePolicy'
>;

export type ValidatingPolicySpec = DeepReadonly<types.ValidatingAdmissionPolicySpec>;

export type MutatingPolicySpec = DeepReadonly<types.MutatingAdmissionPolicySpec>;

export type BindingSpec = DeepReadonly<Partial<types.ValidatingAdmissionPolicyBindingSpec>>;

/** A policy or binding as it is stored. */
export type WithSpec<S> = Readonly<UnstructuredObject> & { readonly spec?: S };
