# The namespace, its credentials and the chart's release: rights, the dispatcher and the namespaces of the work are the
# chart's. No kubeconfig and no credentials of the cluster are handed to anybody; the providers' configuration is yours.

locals {
  name  = "landbridge-dispatcher"
  chart = var.chart == "" ? "${path.module}/../../helm/landbridge-dispatcher" : var.chart

  values = {
    environment      = var.environment
    image            = var.image
    natsUrl          = var.nats_url
    workNamespaces   = var.work_namespaces
    createNamespaces = var.create_namespaces
    storageClass     = var.storage_class
    egressPorts      = var.egress_ports
    operators        = var.operators
    routes           = var.routes
    bindings         = var.bindings
  }
}

resource "kubernetes_namespace" "dispatcher" {
  metadata {
    name = var.namespace
    labels = {
      "pod-security.kubernetes.io/enforce" = "restricted"
      "pod-security.kubernetes.io/warn"    = "restricted"
      "pod-security.kubernetes.io/audit"   = "restricted"
    }
  }
}

resource "kubernetes_secret" "credentials" {
  count = nonsensitive(var.credentials != "") ? 1 : 0

  metadata {
    name      = local.name
    namespace = kubernetes_namespace.dispatcher.metadata[0].name
  }
  data = {
    "dispatcher.creds" = var.credentials
  }
}

resource "helm_release" "dispatcher" {
  name       = local.name
  namespace  = kubernetes_namespace.dispatcher.metadata[0].name
  chart      = local.chart
  version    = var.chart_version
  atomic     = true
  depends_on = [kubernetes_secret.credentials]
  values     = [yamlencode(local.values)]
}
