// Package wire is what goes over the line between the search service and its client: JSON
// documents, file records, request ids and error codes as the service writes them, and the
// multipart body of an upload as it reads it. It sends nothing.
//
// Everything foreign is bounded. The texts of the errors are our own and may be shown.
package wire
