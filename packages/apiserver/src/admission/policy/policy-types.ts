/** admissionregistration.k8s.io/v1 policies and bindings, after defaulting. */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { LabelSelectorObject } from '@coracle/apimachinery/selector/label-selector';
import type { MatchCondition } from '../matching/match-conditions.ts';
import type { OperationRule } from '../matching/rules.ts';

export interface MatchResources {
  readonly namespaceSelector?: LabelSelectorObject;
  readonly objectSelector?: LabelSelectorObject;
  readonly resourceRules?: readonly OperationRule[];
  readonly excludeResourceRules?: readonly OperationRule[];
  readonly matchPolicy?: 'Equivalent' | 'Exact';
}

export interface ParamKind {
  readonly apiVersion: string;
  readonly kind: string;
}

export interface ParamRef {
  readonly name?: string;
  readonly namespace?: string;
  readonly selector?: LabelSelectorObject;
  readonly parameterNotFoundAction?: 'Allow' | 'Deny';
}

export interface Variable {
  readonly name: string;
  readonly expression: string;
}

export interface Validation {
  readonly expression: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
}

/** What both kinds of policies have. */
export interface PolicySpec {
  readonly paramKind?: ParamKind;
  readonly matchConstraints?: MatchResources;
  readonly matchConditions?: readonly MatchCondition[];
  readonly variables?: readonly Variable[];
  readonly failurePolicy?: 'Fail' | 'Ignore';
}

export interface ValidatingPolicySpec extends PolicySpec {
  readonly validations?: readonly Validation[];
  readonly auditAnnotations?: readonly { readonly key: string; readonly valueExpression: string }[];
}

export interface MutatingPolicySpec extends PolicySpec {
  readonly mutations?: readonly {
    readonly patchType: string;
    readonly applyConfiguration?: { readonly expression?: string };
    readonly jsonPatch?: { readonly expression?: string };
  }[];
  readonly reinvocationPolicy?: 'Never' | 'IfNeeded';
}

export interface BindingSpec {
  readonly policyName?: string;
  readonly paramRef?: ParamRef;
  readonly matchResources?: MatchResources;
  /** Of validating policies. */
  readonly validationActions?: readonly string[];
}

/** A policy or binding as it is stored. */
export type WithSpec<S> = Readonly<UnstructuredObject> & { readonly spec?: S };
