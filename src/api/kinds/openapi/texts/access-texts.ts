/** Our own one-line descriptions of who may do what, and how much at a time; the notation is that of `type-texts.ts`. */
export const ACCESS_TEXTS = `
@rbac
AggregationRule: A role that is put together from others.
  clusterRoleSelectors: The roles whose rules are taken in, by labels.
ClusterRole:
  aggregationRule: When set, the rules are put together from other roles.
  rules: What is allowed.
Role:
  rules: What is allowed.
ClusterRoleBinding, RoleBinding:
  roleRef: The role; it cannot be changed.
  subjects: Who gets it.
PolicyRule: Some verbs on some resources or paths.
  apiGroups: The API groups; * for all, an empty text for the core group.
  nonResourceURLs: Paths that are no resources; only in cluster roles.
  resourceNames: The names of objects; all when empty.
  resources: The plurals of resources, or resource/subresource; * for all.
  verbs: What may be done, such as get, list, watch, create, update, patch or delete; * for all.
RoleRef: A role.
  kind: Role or ClusterRole.
Subject: Somebody.
  kind: User, Group or ServiceAccount.
  name: The name.
  namespace: The namespace of a ServiceAccount.
@authentication
BoundObjectReference: The object that a token ends with.
SelfSubjectReview: Asks who the caller is.
SelfSubjectReviewStatus: Who the caller is.
  userInfo: The caller.
TokenRequest: Asks for a token of a service account.
TokenRequestSpec: What the token is for.
  audiences: Whom the token is for.
  boundObjectRef: The object that the token ends with.
  expirationSeconds: How long the token should last.
TokenRequestStatus: The token.
  expirationTimestamp: When it ends.
  token: The token.
TokenReview: Asks whose a token is.
TokenReviewSpec: The token that is asked about.
  audiences: Whom the token must be for.
  token: The token.
TokenReviewStatus: Whose the token is.
  audiences: Whom it is for.
  authenticated: Whether it is good.
  error: Why it could not be checked.
  user: Whose it is.
UserInfo: Somebody who calls.
  extra: More that is known about them.
  groups: The groups they are in.
  username: The name.
@authorization
FieldSelectorAttributes, LabelSelectorAttributes: The selector of a request.
  rawSelector: The selector as it stood in the request.
  requirements: The selector, taken apart.
LocalSubjectAccessReview: Asks whether somebody may do something in a namespace.
SelfSubjectAccessReview: Asks whether the caller may do something.
SelfSubjectRulesReview: Asks what the caller may do in a namespace.
SubjectAccessReview: Asks whether somebody may do something.
NonResourceAttributes: A request for a path that is no resource.
  path: The path.
  verb: What is to be done.
NonResourceRule: Verbs that are allowed on paths.
  nonResourceURLs: The paths.
  verbs: What is allowed.
ResourceAttributes: A request for a resource.
  fieldSelector: The field selector.
  labelSelector: The label selector.
  name: The name of the object; empty for all.
  namespace: The namespace; empty for all, or for objects without one.
  resource: The plural of the resource.
  subresource: The subresource.
  verb: What is to be done.
  version: The version.
ResourceRule: Verbs that are allowed on resources.
  apiGroups: The API groups.
  resourceNames: The names of objects; all when empty.
  resources: The plurals of the resources.
  verbs: What is allowed.
SelfSubjectAccessReviewSpec, SubjectAccessReviewSpec: What is asked about.
  extra: More that is known about the user.
  groups: The groups of the user.
  nonResourceAttributes: The request, when it is for a path.
  resourceAttributes: The request, when it is for a resource.
  user: The name of the user.
SelfSubjectRulesReviewSpec: What is asked about.
  namespace: The namespace.
SubjectAccessReviewStatus: The answer.
  allowed: Whether it is allowed.
  denied: Whether it is forbidden, whatever others say.
  evaluationError: What went wrong while it was worked out.
SubjectRulesReviewStatus: The answer.
  evaluationError: What went wrong while it was worked out.
  incomplete: Whether there may be more than is listed.
  nonResourceRules: What is allowed on paths.
  resourceRules: What is allowed on resources.
@certificates
CertificateSigningRequestSpec: What is to be signed, and for whom.
  expirationSeconds: How long the certificate should last.
  extra: More that is known about who asks.
  groups: The groups of who asks.
  request: The PKCS#10 request in PEM, in base64.
  signerName: Who is to sign.
  uid: The uid of who asks.
  usages: What the key is for.
  username: Who asks; filled by the server.
CertificateSigningRequestStatus: What became of the request.
  certificate: The certificate in PEM, in base64.
  conditions: Whether it was approved, denied or has failed.
CertificateSigningRequestCondition: A decision about the request.
  status: True, False or Unknown.
  type: Approved, Denied or Failed.
@flowcontrol
FlowSchema: Which requests have which priority.
PriorityLevelConfiguration: How many requests of a priority are served at a time.
ExemptPriorityLevelConfiguration, LimitedPriorityLevelConfiguration: The share of a priority level.
  borrowingLimitPercent: How much it may borrow, in percent of its share.
  lendablePercent: How much others may borrow, in percent.
  limitResponse: What becomes of requests that must wait.
  nominalConcurrencyShares: The size of its share compared with others.
FlowDistinguisherMethod: How requests are told apart.
  type: ByUser or ByNamespace.
FlowSchemaCondition, PriorityLevelConfigurationCondition: One thing that is true, false or unknown of the object.
  status: True, False or Unknown.
  type: What it is about.
FlowSchemaSpec: Which requests, and their priority.
  distinguisherMethod: How the requests are told apart.
  matchingPrecedence: The schema with the lowest number comes first.
  priorityLevelConfiguration: The priority level.
  rules: The requests.
FlowSchemaStatus, PriorityLevelConfigurationStatus: How the object stands.
GroupSubject, UserSubject, ServiceAccountSubject: Somebody.
LimitResponse: What becomes of requests that must wait.
  queuing: Settings of the queues.
  type: Queue or Reject.
NonResourcePolicyRule: Requests for paths.
  nonResourceURLs: The paths.
  verbs: The verbs.
PolicyRulesWithSubjects: Requests of somebody.
  nonResourceRules: Requests for paths.
  resourceRules: Requests for resources.
  subjects: Who sends them.
PriorityLevelConfigurationReference: A priority level.
PriorityLevelConfigurationSpec: How a priority level is served.
  exempt: Settings when type is Exempt.
  limited: Settings when type is Limited.
  type: Exempt or Limited.
QueuingConfiguration: Settings of the queues.
  handSize: Among how many queues the shortest is chosen.
  queueLengthLimit: How many requests a queue holds.
  queues: How many queues there are.
ResourcePolicyRule: Requests for resources.
  apiGroups: The API groups.
  clusterScope: Whether requests without a namespace count.
  namespaces: The namespaces.
  resources: The plurals of the resources.
  verbs: The verbs.
Subject: Somebody.
  group: The group, when kind is Group.
  kind: User, Group or ServiceAccount.
  serviceAccount: The account, when kind is ServiceAccount.
  user: The user, when kind is User.
`;
