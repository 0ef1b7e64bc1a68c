output "namespace" {
  description = "The dispatcher's namespace."
  value       = kubernetes_namespace.dispatcher.metadata[0].name
}

output "keeper_url" {
  description = "Where work finds the lease keeper: kubernetes.keeper.url of the bindings has to say so."
  value       = "http://${local.name}.${var.namespace}:8480"
}
