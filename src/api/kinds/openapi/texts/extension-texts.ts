/** Our own one-line descriptions of what is added to the API; the notation is that of `type-texts.ts`. */
export const EXTENSION_TEXTS = `
@admissionregistration
ApplyConfiguration: A change, as what would be applied.
  expression: The CEL expression that gives what is applied.
JSONPatch: A change, as a list of steps.
  expression: The CEL expression that gives the steps.
AuditAnnotation: Something to write into the audit log.
  key: The key.
  valueExpression: The CEL expression that gives the text.
ExpressionWarning: Something odd about an expression.
  fieldRef: The path of the expression.
  warning: What is odd.
MatchCondition: A condition on requests.
  expression: The CEL expression that must be true.
MatchResources, RuleWithOperations, NamedRuleWithOperations: Which requests are meant.
  apiGroups: The API groups; * for all.
  apiVersions: The versions; * for all.
  excludeResourceRules: Requests that are not meant.
  matchPolicy: Exact, or Equivalent to see requests in other versions, too.
  namespaceSelector: The namespaces, by labels.
  objectSelector: The objects, by labels.
  operations: CREATE, UPDATE, DELETE, CONNECT or *.
  resourceNames: The names of objects; all when empty.
  resourceRules: Requests that are meant.
  resources: The plurals of resources, or resource/subresource; * for all.
  scope: Cluster, Namespaced or *.
MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBinding: Puts a policy in force.
MutatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicyBindingSpec: Which policy, and where.
  matchResources: Which requests it is for, among those of the policy.
  paramRef: The objects with its parameters.
  policyName: The policy.
  validationActions: What a refusal does: Deny, Warn or Audit.
MutatingAdmissionPolicySpec, ValidatingAdmissionPolicySpec: Which requests, and what is done with them.
  auditAnnotations: What is written into the audit log.
  failurePolicy: What an error of the policy means: Fail or Ignore.
  matchConditions: Conditions that a request must fulfil, too.
  matchConstraints: Which requests it is for.
  mutations: The changes.
  paramKind: The kind of its parameters.
  reinvocationPolicy: Whether it runs again after others changed the object: Never or IfNeeded.
  validations: What must be true.
  variables: Named values for the expressions.
ValidatingAdmissionPolicyStatus: What was found about the policy.
  typeChecking: What is odd about its expressions.
TypeChecking: What is odd about the expressions.
  expressionWarnings: One entry for each expression.
Mutation: A change.
  applyConfiguration: The change, when patchType is ApplyConfiguration.
  jsonPatch: The change, when patchType is JSONPatch.
  patchType: ApplyConfiguration or JSONPatch.
ParamKind: The kind of the parameters.
ParamRef: The objects with the parameters.
  parameterNotFoundAction: What it means that there are none: Allow or Deny.
  selector: The objects, by labels.
Validation: Something that must be true.
  expression: The CEL expression that must be true.
  message: What is said when it is not.
  messageExpression: A CEL expression that gives what is said.
  reason: The reason of the refusal.
Variable: A named value.
  expression: The CEL expression that gives the value.
MutatingWebhookConfiguration, ValidatingWebhookConfiguration:
  webhooks: The web services.
MutatingWebhook, ValidatingWebhook: A web service, and the requests it is asked about.
  admissionReviewVersions: The versions of AdmissionReview that it takes.
  clientConfig: Where it is.
  failurePolicy: What it means that it cannot be asked: Fail or Ignore.
  matchConditions: Conditions that a request must fulfil, too.
  matchPolicy: Exact, or Equivalent to see requests in other versions, too.
  name: The full name, such as check.example.com.
  namespaceSelector: The namespaces, by labels.
  objectSelector: The objects, by labels.
  reinvocationPolicy: Whether it is asked again after others changed the object: Never or IfNeeded.
  rules: The requests it is asked about.
  sideEffects: Whether it changes anything elsewhere: None or NoneOnDryRun.
  timeoutSeconds: How long it may take.
ServiceReference: A Service that is called.
  path: The path to call.
  port: The port.
WebhookClientConfig: Where a web service is; by service or url.
  caBundle: The certificates that its own is checked with, in PEM, in base64.
  service: The Service.
  url: The address.
@apiextensions
CustomResourceColumnDefinition: A column of kubectl get.
  description: What the column shows.
  format: How the value is written.
  jsonPath: Where the value stands.
  name: The heading.
  priority: 0 is always shown, more only with -o wide.
  type: integer, number, string, boolean or date.
CustomResourceConversion: How objects get from one version to another.
  strategy: None, or Webhook to ask a web service.
  webhook: The web service.
CustomResourceDefinitionCondition: One thing that is true, false or unknown of the definition.
  status: True, False or Unknown.
  type: What it is about, such as NamesAccepted or Established.
CustomResourceDefinitionNames: How the kind and its resource are called.
  categories: The words that name many resources at once, as in kubectl get all.
  kind: The kind, in CamelCase.
  listKind: The kind of lists.
  plural: The plural, as it stands in paths.
  shortNames: Shorter names that kubectl takes.
  singular: The singular.
CustomResourceDefinitionSpec: The kind that is added.
  conversion: How objects get from one version to another.
  names: How the kind and its resource are called.
  preserveUnknownFields: Deprecated: must be false.
  scope: Namespaced or Cluster.
  versions: The versions of the kind.
CustomResourceDefinitionStatus: How the definition stands.
  acceptedNames: The names that are in use.
  storedVersions: The versions that objects may be stored in.
CustomResourceDefinitionVersion: A version of the kind.
  additionalPrinterColumns: The columns of kubectl get.
  deprecated: Whether clients are warned about this version.
  deprecationWarning: The words of the warning.
  name: The version, such as v1.
  schema: What objects look like.
  selectableFields: Fields that field selectors can name.
  served: Whether it can be used.
  storage: Whether objects are stored in it; true for one version.
  subresources: Whether there are status and scale.
CustomResourceSubresourceScale: Where the numbers of the scale subresource stand.
  labelSelectorPath: The path of the selector.
  specReplicasPath: The path of the number that is wanted.
  statusReplicasPath: The path of the number that there is.
CustomResourceSubresourceStatus: That there is a status subresource.
CustomResourceSubresources: Which subresources there are.
  scale: The scale subresource.
  status: The status subresource.
CustomResourceValidation: What objects look like.
  openAPIV3Schema: The schema.
ExternalDocumentation: More to read.
  description: What it is.
  url: Where it is.
JSON: Any JSON value.
JSONSchemaPropsOrArray: A schema, or a list of them.
JSONSchemaPropsOrBool: A schema, or true or false.
JSONSchemaPropsOrStringArray: A schema, or a list of texts.
JSONSchemaProps: A schema: what a value may look like.
  $ref: Not allowed.
  $schema: Which dialect it is written in.
  additionalItems: What further entries of a list look like.
  additionalProperties: What the values of a map look like.
  allOf: Schemas that must all hold.
  anyOf: Schemas of which at least one must hold.
  default: The value that is put in when there is none.
  definitions, dependencies: Not allowed.
  description: What the field is for.
  enum: The values that are allowed.
  example: An example.
  exclusiveMaximum: Whether maximum itself is too much.
  exclusiveMinimum: Whether minimum itself is too little.
  externalDocs: More to read.
  format: What kind of text or number it is, such as date-time or int32.
  id: The name of the schema.
  items: What the entries of a list look like.
  maxItems: The most entries.
  maxLength: The most characters.
  maxProperties: The most fields.
  maximum: The largest number.
  minItems: The fewest entries.
  minLength: The fewest characters.
  minProperties: The fewest fields.
  minimum: The smallest number.
  multipleOf: The number must be a multiple of this.
  not: A schema that must not hold.
  nullable: Whether null is allowed.
  oneOf: Schemas of which just one must hold.
  pattern: A regular expression that the text must match.
  patternProperties: Not allowed.
  properties: The fields, by name.
  required: The fields that must be there.
  title: A heading.
  type: object, array, string, integer, number or boolean.
  uniqueItems: Must be false; use x-kubernetes-list-type: set.
  x-kubernetes-embedded-resource: Whether the value is an object with apiVersion, kind and metadata.
  x-kubernetes-int-or-string: Whether a number and a text are both allowed.
  x-kubernetes-list-map-keys: The fields that tell entries of the list apart.
  x-kubernetes-list-type: How the list is merged: atomic, set or map.
  x-kubernetes-map-type: How the map is merged: granular or atomic.
  x-kubernetes-preserve-unknown-fields: Whether fields that the schema does not know are kept.
  x-kubernetes-validations: Rules in CEL.
SelectableField: A field that field selectors can name.
  jsonPath: Where it stands.
ServiceReference: A Service that is called.
  path: The path to call.
  port: The port.
ValidationRule: A rule in CEL.
  fieldPath: The field that errors name.
  message: What is said when it does not hold.
  messageExpression: A CEL expression that gives what is said.
  optionalOldSelf: Whether the rule is also asked when there is no old value.
  reason: The reason of the refusal.
  rule: The CEL expression that must be true.
WebhookClientConfig: Where a web service is; by service or url.
  caBundle: The certificates that its own is checked with, in PEM, in base64.
  service: The Service.
  url: The address.
WebhookConversion: A web service that converts objects.
  clientConfig: Where it is.
  conversionReviewVersions: The versions of ConversionReview that it takes.
@apiregistration
APIServiceCondition: One thing that is true, false or unknown of the group version.
  status: True, False or Unknown.
  type: What it is about, such as Available.
APIServiceSpec: The group version, and who serves it.
  caBundle: The certificates that the server's own is checked with, in PEM, in base64.
  groupPriorityMinimum: How far in front the group stands in discovery.
  insecureSkipTLSVerify: Whether the server's certificate is not checked.
  service: The Service of the server; empty for what is built in.
  version: The version.
  versionPriority: How far in front the version stands in its group.
APIServiceStatus: How the group version stands.
ServiceReference: A Service that is called.
  port: The port.
`;
